package rlocktest

import (
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"holdfast/internal/inprocess"
	"holdfast/rlock"
)

// Redis is a Redis server in the process of a test, with its clients. All methods are safe for
// concurrent use, but call a method that can fail the test only from the goroutine of the test.
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

// New starts a server for the test t. The server stops when the test ends. The checks of [Check]
// run then, after all deferred calls of the test and after every cleanup registered later than New.
//
// In a bubble of testing/synctest, call New inside the bubble.
func New(t testing.TB) *Redis {
	t.Helper()
	s, err := inprocess.New()
	if err != nil {
		t.Fatalf("rlocktest: cannot start the server: %v", err)
	}
	r := &Redis{t: t, server: s, holds: newHolds(), log: &testLog{t: t},
		strangers: strangers{holds: make(map[string]string)}}
	t.Cleanup(r.end)
	r.client = r.NewClient(rlock.Options{})
	return r
}

// Client returns the client for the program under test. The client has the default options, and
// Options.Debug.
func (r *Redis) Client() *rlock.Client { return r.client }

// NewClient returns another client, for a second process or for other options. The client has
// Options.Debug, so that errors and warnings name lines of code, and logs to the test unless
// options has a Logger. It is closed when the test ends.
func (r *Redis) NewClient(options rlock.Options) *rlock.Client {
	r.t.Helper()
	redis, err := rueidis.NewClient(r.server.ClientOption())
	if redis == nil { // with an error it works as soon as the server is up
		r.t.Fatalf("rlocktest: cannot connect to the server: %v", err)
	}
	if options.Logger == nil {
		options.Logger = r.log.logger()
	}
	options.Debug = true
	options.Tracer = rlock.MultiTracer(options.Tracer, refusals{r.holds})
	client, err := rlock.New(redis, options)
	if err != nil {
		redis.Close()
		r.t.Fatalf("rlocktest: cannot make the client: %v", err)
	}
	watch.Observe(client, r.holds.began)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients, r.rueidis = append(r.clients, client), append(r.rueidis, redis)
	return client
}

// ClientOption returns the options to connect to the server, for a program that creates its own
// [rueidis.Client] and [rlock.Client]. The program must close both. Only the check [Holds] covers
// the locks of such a program.
func (r *Redis) ClientOption() rueidis.ClientOption {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.others = true
	return r.server.ClientOption()
}
