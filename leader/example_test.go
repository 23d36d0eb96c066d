package leader_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"holdfast/leader"
	"holdfast/rlock"
)

// connect stands for what a program does when it starts. Here the server is inside the program, so
// that the examples run anywhere. It does not speak all of RESP3; a real Redis needs neither of the
// last two options.
func connect() (client *rlock.Client, disconnect func()) {
	server := must(miniredis.Run())
	redis := must(rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, AlwaysRESP2: true, DisableCache: true}))
	client = must(rlock.New(redis, rlock.Options{Logger: slog.New(slog.DiscardHandler)}))
	return client, func() {
		_ = client.Close(context.Background())
		redis.Close()
		server.Close()
	}
}

// must returns the value of a call that cannot fail here.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func ExampleRun() {
	client, disconnect := connect()
	defer disconnect()
	ctx, sigterm := context.WithCancel(context.Background())
	options := leader.Options{Grace: 10 * time.Second} // for the last step, after SIGTERM
	err := leader.Run(ctx, client.NewLock("billing"), options, func(lead context.Context) error {
		for step := 1; ctx.Err() == nil && lead.Err() == nil; step++ {
			if step == 3 {
				sigterm()
			}
			fmt.Println("step", step, lead.Err())
		}
		return nil
	})
	fmt.Println("ended:", err)
	// Output:
	// step 1 <nil>
	// step 2 <nil>
	// step 3 <nil>
	// ended: <nil>
}

// A candidate tells others who leads, here the probes of a load balancer.
func ExampleCandidate_IsLeader() {
	client, disconnect := connect()
	defer disconnect()
	candidate := leader.New(client.NewLock("billing"), leader.Options{})
	probe := func() int {
		response := httptest.NewRecorder()
		if !candidate.IsLeader() {
			http.Error(response, "another process leads", http.StatusServiceUnavailable)
		}
		return response.Code
	}
	fmt.Println("before:", probe())
	err := candidate.Run(context.Background(), func(context.Context) error {
		fmt.Println("leader:", probe())
		return nil // this process has no more work
	})
	fmt.Println("after:", probe(), err)
	// Output:
	// before: 503
	// leader: 200
	// after: 503 <nil>
}

// A paused leader may send a write after the next leader has begun. If that does harm, use a fenced
// lock, and make the database reject a write with a smaller token than the last.
func ExampleOptions() {
	client, disconnect := connect()
	defer disconnect()
	var token int64
	options := leader.Options{OnElected: func(hold *rlock.Hold) { token = hold.Token() }}
	for range 2 {
		err := leader.Run(context.Background(), client.NewFencedLock("ledger"), options,
			func(context.Context) error {
				fmt.Printf("UPDATE … WHERE fence <= %d\n", token)
				return nil
			})
		if err != nil {
			panic(err)
		}
	}
	// Output:
	// UPDATE … WHERE fence <= 1
	// UPDATE … WHERE fence <= 2
}
