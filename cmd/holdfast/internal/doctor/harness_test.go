package doctor

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

// connected returns a client with these options.
func connected(t *testing.T, option rueidis.ClientOption) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// through returns a client of a server behind a proxy.
func through(t *testing.T, server *redistest.Server) (rueidis.Client, *faultproxy.Proxy) {
	t.Helper()
	proxy := faultproxy.Start(t, server.Addr())
	option := server.ClientOption()
	proxy.Use(&option)
	return connected(t, option), proxy
}

// saying returns a client of a server whose INFO has these fields in place of its own.
func saying(t *testing.T, fields ...string) rueidis.Client {
	t.Helper()
	server := redistest.Start(t)
	var kept []string
	for line := range strings.Lines(server.DoString(t, "INFO")) {
		name, _, _ := strings.Cut(line, ":")
		other := func(field string) bool { return strings.HasPrefix(field, name+":") }
		if !slices.ContainsFunc(fields, other) && name != "valkey_version" {
			kept = append(kept, strings.TrimSpace(line))
		}
	}
	client, proxy := through(t, server)
	proxy.Answer("INFO", 1, strings.Join(append(kept, fields...), "\r\n"))
	return client
}

// without returns a client whose user has all rights but these.
func without(t *testing.T, rules ...string) rueidis.Client {
	t.Helper()
	rules = append([]string{"~*", "&*", "+@all"}, rules...)
	return redistest.Start(t, redistest.WithUser("app", "secret", rules...)).Client(t)
}

// configured returns a client of a server with these arguments.
func configured(t *testing.T, args ...string) rueidis.Client {
	t.Helper()
	return redistest.Start(t, redistest.WithArgs(args...)).Client(t)
}

// examined returns what one check finds.
func examined(t *testing.T, redis rueidis.Client, name string, o Options) []Finding {
	t.Helper()
	nodes, err := masters(t.Context(), redis, o)
	require.NoError(t, err)
	at := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
	require.GreaterOrEqual(t, at, 0, name)
	ctx := context.WithoutCancel(t.Context())
	found := checks[0].examine(ctx, nodes)
	if at == 0 {
		return found
	}
	return checks[at].examine(ctx, slices.DeleteFunc(nodes, (*node).isGone))
}

// sentence is a call of a function that makes a finding, in the code of this package.
type sentence struct {
	place  string
	state  State
	format *regexp.Regexp // of the text, or of the advice if it is unknown
}

// matches reports whether the finding can be one of that sentence.
func (s sentence) matches(f Finding) bool {
	text := f.Text
	if s.state == Unknown {
		text = strings.TrimPrefix(f.Advice, "check by hand ")
		text, _, _ = strings.Cut(text, ", or allow this user +")
	}
	return f.State == s.state && s.format.MatchString(text)
}

// sentences returns all sentences of this package.
func sentences(t *testing.T) (all []sentence) {
	t.Helper()
	// the position of the text among the arguments
	makers := map[string]struct {
		state State
		text  int
	}{"ok": {OK, 0}, "unknown": {Unknown, 1}, "warning": {Warning, 1}, "failure": {Error, 1}}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, _ := n.(*ast.CallExpr)
			if call == nil {
				return true
			}
			if maker, isOne := makers[called(call)]; isOne {
				all = append(all, sentence{set.Position(call.Pos()).String(), maker.state,
					formatPattern(t, call.Args[maker.text])})
			}
			return true
		})
	}
	return all
}

// called returns the name of the function of a call, or "".
func called(call *ast.CallExpr) string {
	if name, isName := call.Fun.(*ast.Ident); isName {
		return name.Name
	}
	return ""
}

var verb = regexp.MustCompile(`%%|%\w`)

// formatPattern returns what a format may become. What is no constant may become anything.
func formatPattern(t *testing.T, format ast.Expr) *regexp.Regexp {
	t.Helper()
	var text func(ast.Expr) string
	text = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BinaryExpr:
			return text(e.X) + text(e.Y)
		case *ast.BasicLit:
			value, err := strconv.Unquote(e.Value)
			require.NoError(t, err)
			return value
		}
		return "%s"
	}
	var b strings.Builder
	rest := text(format)
	for rest != "" {
		at := verb.FindStringIndex(rest)
		if at == nil {
			b.WriteString(regexp.QuoteMeta(rest))
			break
		}
		b.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		if rest[at[0]:at[1]] == "%%" {
			b.WriteString("%")
		} else {
			b.WriteString("(?s:.*)")
		}
		rest = rest[at[1]:]
	}
	return regexp.MustCompile("^" + b.String() + "$")
}

// sightings collects findings of several tests. The zero value is ready for use.
type sightings struct {
	mu  sync.Mutex
	all []Finding // guarded by mu
}

func (s *sightings) add(found []Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, found...)
}
