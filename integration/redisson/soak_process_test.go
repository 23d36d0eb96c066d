//go:build interop

package redisson_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"holdfast/lua"
	"holdfast/rlock"
)

func init() { processes["soak"] = soakInProcess }

// soakOrder is what a process must do, in Go as well as in Java, where it is an order to the peer.
// Times are in milliseconds.
type soakOrder struct {
	Addresses []string   `json:"addresses"`
	Seed      int64      `json:"seed"`
	Workers   int        `json:"workers"`
	Duration  int64      `json:"duration"`
	Locks     []soakLock `json:"locks"`

	HandOver rlock.HandOver `json:"handOver"` // in Go
}

// soakLock is a lock and what it protects.
type soakLock struct {
	Kind     string   `json:"kind"`
	Names    []string `json:"names"`
	Counters []string `json:"counters"`
	Fence    string   `json:"fence"`   // of a fenced lock: the key of its last token
	Clients  []string `json:"clients"` // of a Java peer
}

// soakReport is what a process has done.
type soakReport struct {
	Sections   map[string]int `json:"sections"`   // by kind
	Increments map[string]int `json:"increments"` // by counter
	Errors     map[string]int `json:"errors"`
}

// soaking is a Go process of the soak. Soak.java does the same.
type soaking struct {
	order  soakOrder
	client *rlock.Client
	plain  rueidis.Client // for counters

	mu     sync.Mutex
	report soakReport // guarded by mu
}

// soakInProcess executes the order in its argument, and prints the report.
func soakInProcess(args []string) error {
	s := &soaking{report: soakReport{Sections: map[string]int{}, Increments: map[string]int{},
		Errors: map[string]int{}}}
	if err := json.Unmarshal([]byte(args[0]), &s.order); err != nil {
		return err
	}
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: s.order.Addresses})
	if err != nil {
		return err
	}
	defer redis.Close()
	if s.plain, err = rueidis.NewClient(
		rueidis.ClientOption{InitAddress: s.order.Addresses}); err != nil {
		return err
	}
	defer s.plain.Close()
	if s.client, err = rlock.New(redis, rlock.Options{
		WatchdogLease: soakWatchdog, HandOver: s.order.HandOver,
		Logger: slog.New(slog.DiscardHandler),
	}); err != nil {
		return err
	}
	end := time.Now().Add(time.Duration(s.order.Duration) * time.Millisecond)
	var workers sync.WaitGroup
	for i := range s.order.Workers {
		random := rand.New(rand.NewPCG(uint64(s.order.Seed), uint64(i)))
		workers.Go(func() {
			for time.Now().Before(end) {
				chosen := s.order.Locks[random.IntN(len(s.order.Locks))]
				if err := s.attempt(chosen, random); err != nil {
					s.note(func(r *soakReport) { r.Errors[chosen.Kind+": "+err.Error()]++ })
				}
			}
		})
	}
	workers.Wait()
	if err := s.client.Close(context.Background()); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s.report)
}

func (s *soaking) note(change func(*soakReport)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.report)
}

// attempt is one attempt to lock, and the work under the lock.
func (s *soaking) attempt(chosen soakLock, random *rand.Rand) (err error) {
	lock := lockerOf([]*rlock.Client{s.client}, target{chosen.Kind, chosen.Names})
	wait, lease, nested := rlock.NoWait, rlock.Watchdog, random.IntN(4) == 0
	if random.IntN(4) > 0 {
		wait = time.Duration(50+random.IntN(450)) * time.Millisecond
	}
	if random.IntN(2) == 0 {
		lease = longLease
	}
	hold, err := lock.TryLock(rlock.WithOwner(context.Background()), wait, lease)
	switch {
	case errors.Is(err, rlock.ErrNotAcquired):
		return nil
	case noReply(err):
		// On a busy machine there may be no reply within so short a wait. If the lock was acquired
		// nevertheless it is released in the background.
		s.note(func(r *soakReport) { r.Sections["noReply"]++ })
		return nil
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock(context.Background())) }()
	if chosen.Kind == fenced {
		if err := s.fence(hold.Context(), chosen.Fence, hold.Token()); err != nil {
			return err
		}
	}
	if nested {
		inner, err := lock.TryLock(hold.Context(), rlock.NoWait, lease)
		if err != nil {
			return fmt.Errorf("its holder could not relock it: %w", err)
		}
		if err := errors.Join(s.section(hold.Context(), chosen),
			inner.Unlock(context.Background())); err != nil {
			return err
		}
	}
	return s.section(hold.Context(), chosen)
}

// noReply reports whether the time was over before Redis replied.
func noReply(err error) bool {
	var refusal *rlock.ServerError
	return errors.As(err, &refusal) && refusal.Class != lua.ClassPermanent
}

// section must not be executed by two holders at a time.
func (s *soaking) section(ctx context.Context, chosen soakLock) error {
	for _, counter := range chosen.Counters {
		before, err := s.get(ctx, counter)
		if err != nil {
			return err
		}
		if chosen.Kind == read {
			again, err := s.get(ctx, counter)
			if err == nil && again != before {
				err = errors.New("a counter changed while it was read")
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := s.set(ctx, counter, before+1); err != nil {
			return err
		}
		s.note(func(r *soakReport) { r.Increments[counter]++ })
	}
	s.note(func(r *soakReport) { r.Sections[chosen.Kind]++ })
	return nil
}

// fence leaves the token for the next holder, whose own must be larger.
func (s *soaking) fence(ctx context.Context, key string, token int64) error {
	before, err := s.get(ctx, key)
	if err != nil {
		return err
	}
	if before >= token {
		return fmt.Errorf("fencing token %d after %d", token, before)
	}
	return s.set(ctx, key, token)
}

func (s *soaking) get(ctx context.Context, key string) (int64, error) {
	return s.plain.Do(ctx, s.plain.B().Get().Key(key).Build()).AsInt64()
}

func (s *soaking) set(ctx context.Context, key string, value int64) error {
	return s.plain.Do(ctx, s.plain.B().Set().Key(key).Value(fmt.Sprint(value)).Build()).Error()
}
