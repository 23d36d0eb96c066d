//go:build nightly

package dashboard

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	holdfastotel "holdfast/otel"
	"holdfast/redlock"
	"holdfast/rlock"
)

// watchdogLease is short, so that a short run sees leases that end.
const watchdogLease = 3 * time.Second

// service is several processes that use locks on one server, and RedLocks on three more.
type service struct {
	server    *redistest.Server
	nodes     []*redistest.Server
	processes []*process
	address   string // of their metrics: each has them at the path that is its name
	running   sync.WaitGroup
}

// process is one process of a service: it has a client of each server, and metrics of its own. All
// are in fact inside this process.
type process struct {
	name   string
	client *rlock.Client
	nodes  []*rlock.Client
	spawn  func(func()) // starts a goroutine of the service
}

// startService starts the servers and the processes, which do nothing yet.
func startService(t *testing.T, names ...string) *service {
	t.Helper()
	s := &service{server: redistest.Start(t, redistest.WithUser("shop", "secret")),
		nodes: redistest.StartAll(t, 3)}
	mux := http.NewServeMux()
	for _, name := range names {
		registry := client.NewRegistry()
		exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
		require.NoError(t, err)
		provider := metric.NewMeterProvider(metric.WithReader(exporter))
		mux.Handle("/"+name, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
		tracer := holdfastotel.New(holdfastotel.WithMeterProvider(provider))
		connect := func(to *redistest.Server, server string) *rlock.Client {
			client, err := rlock.New(to.Client(t), rlock.Options{Tracer: tracer, Server: server,
				WatchdogLease: watchdogLease, CommandTimeout: time.Second, Label: name,
				Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			t.Cleanup(func() { locktest.CloseClient(t, client) })
			return client
		}
		p := &process{name: name, client: connect(s.server, "redis"), spawn: s.running.Go}
		for i, node := range s.nodes {
			p.nodes = append(p.nodes, connect(node, fmt.Sprintf("node-%c", 'a'+i)))
		}
		s.processes = append(s.processes, p)
	}
	metrics := httptest.NewServer(mux)
	t.Cleanup(metrics.Close)
	s.address = strings.TrimPrefix(metrics.URL, "http://")
	return s
}

// redLock returns a RedLock. The servers were just started, and forget nothing.
func (p *process) redLock(name string) rlock.Locker {
	return redlock.NewOn(name, redlock.Options{FsyncAlways: true}, p.nodes...)
}

// work uses locks of all kinds until ctx ends.
func (p *process) work(ctx context.Context) {
	c := p.client
	prices := c.NewReadWriteLock("prices")
	for range 3 {
		p.use(ctx, c.NewLock("stock"), job{wait: 2 * time.Second, works: 5, rests: 40})
		p.use(ctx, prices.Read(), job{wait: 2 * time.Second, works: 5, rests: 100})
	}
	p.use(ctx, prices.Write(), job{wait: 2 * time.Second, works: 10, rests: 300})
	for range 2 {
		p.use(ctx, c.NewFairLock("mail"), job{wait: 2 * time.Second, works: 10, rests: 100})
		p.use(ctx, c.NewFencedLock("ledger"), job{wait: 2 * time.Second, works: 10, rests: 300})
	}
	p.use(ctx, c.NewNonReentrantLock("cron"), job{wait: time.Second, works: 10, rests: 100})
	p.use(ctx, c.NewLock("nested"), job{wait: time.Second, works: 10, rests: 100,
		nested: c.NewLock("nested")})
	p.use(ctx, multilock.NewOn(c, "account:17", "account:42"),
		job{wait: time.Second, works: 10, rests: 100})
	p.use(ctx, p.redLock("order"), job{wait: time.Second, works: 10, rests: 100})

	// Callers that give up.
	p.use(ctx, c.NewLock("stock"), job{wait: rlock.NoWait, works: 5, rests: 100})
	p.use(ctx, c.NewLock("stock"), job{wait: 10 * time.Millisecond, works: 5, rests: 100})
	p.use(ctx, c.NewLock("stock"), job{wait: time.Second, within: 5 * time.Millisecond, works: 5,
		rests: 100})

	// Holds that are renewed for long.
	for i, l := range []rlock.Locker{
		c.NewLock("report:a:" + p.name), c.NewFairLock("report:b:" + p.name),
		c.NewFencedLock("report:c:" + p.name), c.NewNonReentrantLock("report:d:" + p.name),
		c.NewReadWriteLock("report:e:" + p.name).Read(),
		c.NewReadWriteLock("report:f:" + p.name).Write(), p.redLock("leader:" + p.name),
	} {
		p.use(ctx, l, job{wait: time.Second, works: 8000 + 100*i, rests: 200})
	}
}

// job is how a goroutine uses a lock, again and again.
type job struct {
	wait         time.Duration
	lease        rlock.Lease   // 0 is the watchdog
	within       time.Duration // limits the call by its context
	works, rests int           // milliseconds with and without the lock, on average
	exactly      bool          // works just as long
	nested       rlock.Locker  // is acquired as well, while it works
}

// use starts a goroutine that does a job until ctx ends.
func (p *process) use(ctx context.Context, l rlock.Locker, j job) {
	if j.lease == 0 {
		j.lease = rlock.Watchdog
	}
	// random returns a time that differs from ms by up to a half.
	random := func(ms int) time.Duration {
		return time.Duration((0.5 + rand.Float64()) * float64(ms) * float64(time.Millisecond))
	}
	p.spawn(func() {
		for ; ctx.Err() == nil; pause(ctx, random(j.rests)) {
			call, cancel := ctx, context.CancelFunc(func() {})
			if j.within > 0 {
				call, cancel = context.WithTimeout(ctx, j.within)
			}
			hold, err := l.TryLock(call, j.wait, j.lease)
			cancel()
			if err != nil {
				continue
			}
			working, stop := context.WithCancel(ctx)
			lost := context.AfterFunc(hold.Context(), stop)
			works := random(j.works)
			if j.exactly {
				works = time.Duration(j.works) * time.Millisecond
			}
			pause(working, works)
			if j.nested != nil {
				if inner, err := j.nested.TryLock(hold.Context(), j.wait, j.lease); err == nil {
					_ = inner.Unlock() // faults may prevent it
				}
			}
			lost()
			stop()
			_ = hold.Unlock()
		}
	})
}

// pause waits until ctx ends, at most for d.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
