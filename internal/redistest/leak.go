package redistest

import (
	"testing"

	"go.uber.org/goleak"
)

// VerifyMain is goleak.VerifyTestMain for packages that use redistest: it runs the tests and fails
// if a goroutine is left. It ignores only the goroutines of rueidis that end by themselves, but
// later than goleak waits, and those of more. It calls FixSeed.
func VerifyMain(m *testing.M, more ...goleak.Option) {
	FixSeed()
	goleak.VerifyTestMain(m, append(OutlivesClose(), more...)...)
}

// OutlivesClose ignores the goroutines of rueidis that outlive Close. It closes a connection that a
// cluster no longer needs after 5 s, and refreshes its view of the cluster after up to 1 s. A
// client of a single node begins as a cluster client.
func OutlivesClose() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	}
}

// IgnoreCurrent is goleak.IgnoreCurrent for a test that pauses or restarts a server: a request to a
// Docker engine leaves idle HTTP connections.
func IgnoreCurrent() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreCurrent(),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	}
}
