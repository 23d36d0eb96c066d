package doctor

import (
	"context"
	"slices"
	"strings"
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
