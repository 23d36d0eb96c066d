package redistest

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// monitorTimeout ends the connection of a monitor that was not stopped.
const monitorTimeout = 10 * time.Minute

// A Monitor collects the commands that clients send to a server, in order. It belongs to the
// goroutine of its test.
type Monitor struct {
	server *Server
	conn   *conn
}

// connectionCommands belong to a connection, not to what its client does with it.
var connectionCommands = map[string]bool{
	"auth": true, "client": true, "echo": true, "hello": true, "ping": true, "select": true,
}

// Monitor begins to collect. It sees commands that arrive after it has returned. tb's clean-up
// stops it.
func (s *Server) Monitor(tb testing.TB) *Monitor {
	tb.Helper()
	c, err := s.dial(monitorTimeout)
	require.NoError(tb, err)
	tb.Cleanup(func() { c.Close() })
	_, err = c.call("MONITOR")
	require.NoError(tb, err)
	return &Monitor{server: s, conn: c}
}

// Commands returns the commands executed since the last call of Commands or CommandsOfScripts, or
// since the monitor began: each as its name in lower case and its arguments. It leaves out commands
// that scripts call, those that set up or check a connection, and those with a key of [OfClient],
// which come at any time. A command whose reply came before the call is never missing.
func (m *Monitor) Commands(tb testing.TB) [][]string {
	tb.Helper()
	return m.collect(tb, false)
}

// CommandsOfScripts is Commands for the commands that scripts call, which Commands leaves out.
func (m *Monitor) CommandsOfScripts(tb testing.TB) [][]string {
	tb.Helper()
	return m.collect(tb, true)
}

// collect returns the commands of clients or those of scripts, and drops the others.
func (m *Monitor) collect(tb testing.TB, ofScripts bool) [][]string {
	tb.Helper()
	// The server shows commands in the order of their execution: when it shows this one, it has
	// shown all before.
	marker := "monitor-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	m.server.Do(tb, "ECHO", marker)
	var commands [][]string
	for {
		reply, err := m.conn.read()
		require.NoError(tb, err)
		args, lua, err := parseMonitored(as[string](tb, reply, []string{"MONITOR"}))
		require.NoError(tb, err)
		if args[0] == "echo" && args[1] == marker {
			return commands
		}
		if lua == ofScripts && !connectionCommands[args[0]] && !slices.ContainsFunc(args, OfClient) {
			commands = append(commands, args)
		}
	}
}

// parseMonitored parses a line such as
//
//	1700000000.000001 [0 127.0.0.1:50000] "SET" "key" "a \"quoted\" value"
//
// A command called by a script has "lua" instead of an address.
func parseMonitored(line string) (args []string, lua bool, err error) {
	_, rest, found := strings.Cut(line, " [")
	origin, quoted, end := strings.Cut(rest, "] ")
	if !found || !end {
		return nil, false, errors.New("not a line of MONITOR: " + line)
	}
	args = unquoteAll(quoted)
	if args == nil {
		// Valkey 8.1.0 and 8.1.1, which is Debian 13's, escape neither quotes nor backslashes.
		args = strings.Split(strings.TrimSuffix(strings.TrimPrefix(quoted, `"`), `"`), `" "`)
	}
	if len(args) == 0 {
		return nil, false, errors.New("not a line of MONITOR: " + line)
	}
	args[0] = strings.ToLower(args[0])
	return args, strings.HasSuffix(origin, " lua"), nil
}

// unquoteAll returns quoted words without quotes, or nil if they are not quoted as in Go and Redis.
func unquoteAll(quoted string) (words []string) {
	for quoted != "" {
		prefix, err := strconv.QuotedPrefix(quoted)
		if err != nil {
			return nil
		}
		word, err := strconv.Unquote(prefix)
		if err != nil {
			return nil
		}
		words = append(words, word)
		quoted = strings.TrimPrefix(quoted[len(prefix):], " ")
	}
	return words
}
