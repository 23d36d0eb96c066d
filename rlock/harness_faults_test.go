package rlock_test

import (
	"crypto/sha1"
	"encoding/hex"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/faults"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// promptly bounds what takes milliseconds, on a busy machine too. What it must not wait for takes
// longer: a waiter's next request, 5 s; a command without reply, 3 s; a lease, more.
const promptly = 2 * time.Second

// shortTimeout is a CommandTimeout for tests that wait until it is over. With promptly it is less
// than the default, 3 s.
const shortTimeout = 500 * time.Millisecond

// longLease outlasts any test: a lock that becomes free was released.
const longLease = 10 * time.Minute

// proxied returns a client whose connections to the server pass through a proxy, with one
// connection for commands. In clean-up the proxy lets everything pass before the client is closed.
// The client is anonymous: while the reply to what says who it is were held, rueidis would send
// nothing else.
func proxied(
	t testing.TB, s *redistest.Server, options rlock.Options,
	mutators ...func(*rueidis.ClientOption),
) (*rlock.Client, *faultproxy.Proxy) {
	t.Helper()
	p := faultproxy.Start(t, s.Addr())
	options.Anonymous = true
	c := newClient(t, s, options, append(mutators, through(p), redistest.OneConnection)...)
	t.Cleanup(p.Pass)
	return c, p
}

func through(p *faultproxy.Proxy) func(*rueidis.ClientOption) {
	return func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} }
}

// warm makes c connect and the server load the scripts.
func warm(t testing.TB, c *rlock.Client, lock string) {
	t.Helper()
	hold := take(t, c.NewLock(lock), longLease)
	unlock(t, takeWith(hold.Context(), t, c.NewLock(lock), longLease))
	unlock(t, hold)
}

// warm is warm for a lock of this kind.
func (k kind) warm(t testing.TB, c *rlock.Client, lock string) {
	t.Helper()
	hold := take(t, k.lock(c, lock), longLease)
	require.NoError(t, hold.Extend(t.Context(), longLease))
	unlock(t, takeWith(hold.Context(), t, k.lock(c, lock), longLease))
	unlock(t, hold)
}

// script returns what identifies a call of a script on the network, once the server knows it.
func script(t testing.TB, file string) string {
	t.Helper()
	sum := sha1.Sum(source(t, file))
	return hex.EncodeToString(sum[:])
}

// loaded is script, and makes sure that the server knows it.
func loaded(t testing.TB, s *redistest.Server, file string) string {
	t.Helper()
	return s.DoString(t, "SCRIPT", "LOAD", string(source(t, file)))
}

func source(t testing.TB, file string) []byte {
	t.Helper()
	source, known := locktest.Scripts()[file]
	require.True(t, known, file)
	return []byte(source)
}

// exists reports whether the server has the key. Any goroutine may call it.
func exists(s *redistest.Server, key string) bool {
	reply, err := s.Call("EXISTS", key)
	return err == nil && reply == int64(1)
}

// absent reports whether the server replies, and does not have the key.
func absent(s *redistest.Server, key string) bool {
	reply, err := s.Call("EXISTS", key)
	return err == nil && reply == int64(0)
}

// befall makes a fault of the table happen to a server without proxy, and returns what ends it.
func befall(t testing.TB, s *redistest.Server, what string) (end func()) {
	t.Helper()
	f, v := faults.Named(t, what), &faults.Victim{Server: s}
	f.Begin(t, v)
	return func() { f.End(t, v) }
}

// counts returns the fields of the lock "order": owner and hold count.
func counts(t *testing.T, s *redistest.Server) map[string]string {
	t.Helper()
	return s.DoMap(t, "HGETALL", "order")
}
