package rlocktest

import (
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"holdfast/internal/inprocess"
	"holdfast/rlock"
)

// Redis is a Redis server in the process of a test, with its clients. All methods are safe for
// concurrent use. Those that fail the test belong to the test's goroutine.
type Redis struct {
	t      testing.TB
	server *inprocess.Server
	client *rlock.Client
	holds  *holds
	log    *testLog

	strangers strangers

	mu      sync.Mutex
	clients []*rlock.Client  // guarded by mu
	rueidis []rueidis.Client // guarded by mu
	allowed Check            // guarded by mu
	others  bool             // guarded by mu; the program may have made clients
}

// New starts a server, which ends with the test t. The test then fails for what [Check] lists. That
// comes after everything that the test has deferred, and after clean-ups registered later than New.
//
// In a bubble of testing/synctest, call New inside the bubble.
func New(t testing.TB) *Redis {
	t.Helper()
	s, err := inprocess.New()
	if err != nil {
		t.Fatalf("rlocktest: %v", err)
	}
	r := &Redis{t: t, server: s, holds: newHolds(), log: &testLog{t: t},
		strangers: strangers{holds: make(map[string]string)}}
	t.Cleanup(r.end)
	r.client = r.NewClient(rlock.Options{})
	return r
}

// Client returns the client for the program under test. It has the default options,
// and Options.Debug.
func (r *Redis) Client() *rlock.Client { return r.client }

// NewClient returns another client, as a second process would have it, or one with other options.
// It logs to the test unless they have a Logger, and has Options.Debug, so that its errors and
// warnings name lines of code. It is closed when the test ends.
func (r *Redis) NewClient(options rlock.Options) *rlock.Client {
	r.t.Helper()
	redis, err := rueidis.NewClient(r.server.ClientOption())
	if redis == nil { // with an error it works as soon as the server is up
		r.t.Fatalf("rlocktest: connect: %v", err)
	}
	if options.Logger == nil {
		options.Logger = r.log.logger()
	}
	options.Debug = true
	options.Tracer = rlock.MultiTracer(options.Tracer, refusals{r.holds})
	client, err := rlock.New(redis, options)
	if err != nil {
		redis.Close()
		r.t.Fatalf("rlocktest: %v", err)
	}
	watch.Observe(client, r.holds.began)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients, r.rueidis = append(r.clients, client), append(r.rueidis, redis)
	return client
}

// ClientOption returns how to reach the server, for a program that makes its own [rueidis.Client],
// and its [rlock.Client] of that. Such a program closes both. Of the checks at the end of the test
// only the one for [Holds] knows what it does.
func (r *Redis) ClientOption() rueidis.ClientOption {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.others = true
	return r.server.ClientOption()
}
