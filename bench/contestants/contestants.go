// Package contestants has the contestants of the benchmark, each with its settings: the floors,
// which are raw scripts, this library, and other libraries.
package contestants

import (
	"fmt"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"holdfast/bench/contest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// Pollers ask this often where the length of waits matters. With their defaults they ask so rarely
// that the last holder acquires the lock again and again: many acquisitions, few commands, and the
// others starve. A millisecond gives the shortest waits to few callers, and 5 ms the most
// acquisitions to many without that.
const oftenPoll, bestPoll = time.Millisecond, 5 * time.Millisecond

// all are the contestants in the order in which they are shown and take turns.
var all = []contest.Contestant{
	raw("raw scripts", "EVALSHA of one script to acquire, and of one to release"),
	batched(raw("raw scripts", "")),
	raw("raw scripts, no network", "without the delays of the network"),
	localQueue(), queue(), message(), announced(), quorum(),

	holdfast("holdfast", "defaults, with the watchdog", rlock.Options{}),
	batched(holdfast("holdfast", "", rlock.Options{})),
	holdfast("holdfast, announcing",
		"HandOverNone: every release is announced, and nothing handed over", announcing()),
	fairLock(),
	observed("holdfast, metrics", "with OpenTelemetry: metrics", nil),
	observed("holdfast, metrics and traces",
		"with OpenTelemetry: metrics, and two spans for each cycle", sdktrace.AlwaysSample()),
	observed("holdfast, metrics and few traces",
		"with OpenTelemetry: metrics, and two spans for every tenth cycle",
		sdktrace.TraceIDRatioBased(0.1)),
	holdfastRedLock("holdfast redlock", "defaults", redlock.Options{}),
	holdfastRedLock("holdfast redlock, durable",
		"FsyncAlways stated, so that nobody asks for how long a node has been up",
		redlock.Options{FsyncAlways: true}),

	rueidisLock("rueidislock",
		"KeyMajority 1 and NoLoopTracking, as its README has it for one server", 0),
	rueidisLock("rueidislock, patient",
		"as above, and TryNextAfter 1 s: after 20 ms, its default, a busy server's answer comes "+
			"too late", time.Second),
	batched(rueidisLock("rueidislock, patient", "", time.Second)),
	redsyncOn("redsync, rueidis", "defaults: asks every 50 to 250 ms, and gives up after 32 times",
		rueidisPools),
	batched(redsyncOn("redsync, rueidis", "", rueidisPools)),
	redsyncOn("redsync, rueidis, 1 ms", "asks every ms, and does not give up", rueidisPools,
		polling(oftenPoll)...),
	redsyncOn("redsync, rueidis, 5 ms", "asks every 5 ms, and does not give up", rueidisPools,
		polling(bestPoll)...),
	redsyncOn("redsync, rueidis, fail fast", "WithFailFast", rueidisPools,
		redsync.WithFailFast(true)),
	redsyncOn("redsync, go-redis", "defaults, as above", goredisPools),
	autoPipelining(redsyncOn("redsync, go-redis", "", goredisPools)),
	redsyncOn("redsync, go-redis, 5 ms", "asks every 5 ms, and does not give up", goredisPools,
		polling(bestPoll)...),
	redislockWith("redislock", "exponential backoff from the 16 ms that it recommends, to 512 ms",
		recommendedBackoff),
	autoPipelining(redislockWith("redislock", "", recommendedBackoff)),
	redislockWith("redislock, 1 ms", "linear backoff: asks every ms",
		func() redislock.RetryStrategy { return redislock.LinearBackoff(oftenPoll) }),
	redislockWith("redislock, 5 ms", "linear backoff: asks every 5 ms",
		func() redislock.RetryStrategy { return redislock.LinearBackoff(bestPoll) }),
	goZero("go-zero, 5 ms", "does not wait: asked every 5 ms", bestPoll),
	inJava("redisson", "Java: RLock with the watchdog; defaults of the client for a single server"),
	inJava("redisson, fair", "Java: as above, from getFairLock"),
	inJava("redisson redlock", "Java: RedissonRedLock of five such clients"),
}

// Named returns the contestant of that name.
func Named(name string) (contest.Contestant, error) {
	for _, c := range all {
		if c.Name == name {
			return c, nil
		}
	}
	return contest.Contestant{}, fmt.Errorf("there is no contestant %q", name)
}
