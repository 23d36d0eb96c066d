package inprocess

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	resp "github.com/alicebob/miniredis/v2/server"
)

// monitor counts commands and shows them to clients that have sent MONITOR, as Redis does.
type monitor struct {
	mu       sync.Mutex
	calls    map[string]int // guarded by mu; by the command's name in lower case
	watchers []*resp.Peer   // guarded by mu
}

// see is told of each command before it is executed, also of those that scripts call.
func (m *monitor) see(peer *resp.Peer, command string, args []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[strings.ToLower(command)]++
	if len(m.watchers) == 0 {
		return
	}
	origin := "127.0.0.1:0"
	if inScript(peer) {
		origin = "lua"
	}
	now := time.Now()
	var line strings.Builder
	fmt.Fprintf(&line, "%d.%06d [0 %s] %q", now.Unix(), now.Nanosecond()/1000, origin, command)
	for _, arg := range args {
		fmt.Fprintf(&line, " %q", arg)
	}
	for _, w := range m.watchers {
		w.WriteInline(line.String())
		w.Flush()
	}
}

// inScript reports whether a command comes from a script. miniredis keeps that to itself.
func inScript(peer *resp.Peer) bool {
	ctx := reflect.ValueOf(peer.Ctx)
	return ctx.Kind() == reflect.Pointer && ctx.Elem().FieldByName("nested").Bool()
}

func (m *monitor) add(peer *resp.Peer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watchers = append(m.watchers, peer)
	peer.OnDisconnect(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.watchers = slices.DeleteFunc(m.watchers, func(p *resp.Peer) bool { return p == peer })
	})
	peer.WriteOK()
}

func (m *monitor) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.calls)
}

// stats returns INFO commandstats.
func (m *monitor) stats() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var text strings.Builder
	text.WriteString("# Commandstats\r\n")
	for command, calls := range m.calls {
		fmt.Fprintf(&text, "cmdstat_%s:calls=%d,usec=0\r\n", command, calls)
	}
	return text.String()
}

// execute executes the commands that miniredis lacks, and reports whether it did. Commands of
// scripts come here too.
func (s *Server) execute(peer *resp.Peer, command string, args ...string) bool {
	first := ""
	if len(args) > 0 {
		first = strings.ToLower(args[0])
	}
	s.monitor.see(peer, command, args)
	rejected := s.rejected.Load()
	switch {
	case rejected != nil && (command == "EVALSHA" || command == "EVAL") &&
		slices.ContainsFunc(args[1:], func(arg string) bool {
			return strings.Contains(arg, rejected.part)
		}):
		peer.WriteError(rejected.err)
	case command == "INFO" && first == "server":
		peer.WriteBulk(fmt.Sprintf("# Server\r\nredis_version:7.0.0\r\nprocess_id:%d\r\n"+
			"uptime_in_seconds:%d\r\n", os.Getpid(), time.Now().Unix()-s.started.Load()))
	case command == "LASTSAVE":
		peer.WriteInt(int(s.started.Load()))
	case command == "INFO" && first == "replication":
		peer.WriteBulk("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n")
	case command == "INFO" && first == "commandstats":
		peer.WriteBulk(s.monitor.stats())
	case command == "CONFIG" && first == "resetstat":
		s.monitor.reset()
		peer.WriteOK()
	case command == "MONITOR":
		s.monitor.add(peer)
	case command == "CLUSTER":
		// A client that is told of a cluster of one node would look for it on a port.
		peer.WriteError("ERR This instance has cluster support disabled")
	default:
		return false
	}
	return true
}
