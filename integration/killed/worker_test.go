//go:build redis

package killed_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"holdfast/once"
	"holdfast/rlock"
)

// role is what a process of the test is for.
const role = "once"

// takes is how long the function of a key takes.
const takes = 100 * time.Millisecond

// orders is what a worker is told, on its standard input. It ends its round when the input ends.
type orders struct {
	Server  string
	Lease   time.Duration
	Callers int
	Round   int // its first, from 1
}

// event is what a worker writes to its standard output.
type event struct {
	What    string // runs, or done
	Round   int
	Results []string `json:",omitempty"` // of the callers of a round, without repetition
	Lost    int      `json:",omitempty"` // how many runs of the round did not store their result
	Errors  []string `json:",omitempty"`
}

// work runs the callers of a process. In each round, all ask for the same key.
func work([]string) error {
	var o orders
	input := json.NewDecoder(os.Stdin)
	if err := input.Decode(&o); err != nil {
		return err
	}
	var stop atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop.Store(true)
	}()
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{o.Server}})
	if err != nil {
		return err
	}
	defer redis.Close()
	client, err := rlock.New(redis, rlock.Options{WatchdogLease: o.Lease})
	if err != nil {
		return err
	}
	defer client.Close(context.Background()) //nolint:errcheck // the process ends
	var mu sync.Mutex
	output := json.NewEncoder(os.Stdout)
	for round := o.Round; !stop.Load(); round++ {
		done := event{What: "done", Round: round}
		results := map[string]bool{}
		var callers sync.WaitGroup
		for range o.Callers {
			callers.Go(func() {
				result, err := ask(redis, client, round, func() {
					mu.Lock()
					defer mu.Unlock()
					_ = output.Encode(event{What: "runs", Round: round})
				})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, once.ErrNotRecorded), errors.Is(err, rlock.ErrLost):
					done.Lost++
				case err != nil:
					done.Errors = append(done.Errors, err.Error())
				default:
					results[result] = true
				}
			})
		}
		callers.Wait()
		for result := range results {
			done.Results = append(done.Results, result)
		}
		mu.Lock()
		err := output.Encode(done)
		mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// ask returns the result of a round. It calls runs before the function does anything.
func ask(redis rueidis.Client, client *rlock.Client, round int, runs func()) (string, error) {
	for {
		result, err := once.Do(context.Background(), client, keyOf(round), time.Hour,
			func(ctx context.Context) (string, error) {
				runs()
				count := redis.B().Incr().Key(runsOf(round)).Build()
				if err := redis.Do(ctx, count).Error(); err != nil {
					return "", err
				}
				time.Sleep(takes)
				return rand.Text(), nil
			})
		early := errors.Is(err, rlock.ErrLost) || errors.Is(err, rlock.ErrOutcomeUnknown)
		if !early || !errors.Is(err, rlock.ErrNotRun) {
			return result, err
		}
		// This process stood still, and lost its lock before the function ran.
	}
}

func keyOf(round int) string  { return fmt.Sprintf("round:%d", round) }
func runsOf(round int) string { return fmt.Sprintf("runs:%d", round) }
