package once_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"holdfast/once"
	"holdfast/rlock"
)

// connect stands for what a program does when it starts. Here the server is inside the program, so
// that the examples run anywhere. It does not speak all of RESP3; a real Redis needs neither of the
// last two options.
func connect() (client *rlock.Client, disconnect func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	redis, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:  []string{server.Addr()},
		AlwaysRESP2:  true,
		DisableCache: true,
	})
	if err != nil {
		panic(err)
	}
	client, err = rlock.New(redis, rlock.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	return client, func() {
		_ = client.Close(context.Background())
		redis.Close()
		server.Close()
	}
}

func ExampleDo() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	type Receipt struct{ Amount int }
	for range 3 { // a client that retries
		receipt, err := once.Do(ctx, client, "payment:42", 24*time.Hour,
			func(context.Context) (Receipt, error) {
				fmt.Println("charge the card")
				return Receipt{Amount: 5}, nil
			})
		fmt.Println(receipt.Amount, err)
	}
	// Output:
	// charge the card
	// 5 <nil>
	// 5 <nil>
	// 5 <nil>
}

func ExampleFingerprint() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	for _, request := range []string{`{"amount": 5}`, `{"amount": 6}`} {
		_, err := once.Do(ctx, client, "payment:42", 24*time.Hour,
			func(context.Context) (string, error) { return "paid", nil },
			once.Fingerprint([]byte(request)))
		fmt.Println(errors.Is(err, once.ErrMismatch))
	}
	// Output:
	// false
	// true
}

func ExampleToken() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	largest := int64(0) // of the writes to a resource, which rejects smaller tokens
	_, err := once.Do(ctx, client, "payment:42", 24*time.Hour,
		func(ctx context.Context) (bool, error) {
			if once.Token(ctx) < largest {
				return false, errors.New("a later run has written already")
			}
			largest = once.Token(ctx)
			return true, nil
		})
	fmt.Println(err, largest > 0)
	// Output: <nil> true
}
