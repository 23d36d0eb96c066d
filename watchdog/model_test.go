package watchdog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// model is what the watchdog should do, written down without heap, batches or timers.
type model struct {
	t      *testing.T
	random *rand.Rand

	mu     sync.Mutex // the store and the test run on different goroutines
	leases []*modelLease
}

type modelLease struct {
	lease    *Lease
	group    string
	deadline time.Time
	renew    bool
	over     bool
	calls    int // in flight
	lose     func(reason error)
	lost     error // set by lose
	expected error // what Lost should have been called with
}

// upTo is a random duration below d.
func (m *model) upTo(d time.Duration) time.Duration {
	return time.Duration(m.random.Int64N(int64(d)))
}

// renew is the store: slow, failing and forgetful at random. It predicts the effect of its own
// replies.
func (m *model) renew(_ context.Context, group string, leases []*Lease) ([]Outcome, error) {
	m.mu.Lock()
	start := time.Now()
	if len(leases) == 0 || len(leases) > 3 {
		m.t.Errorf("a batch of %d", len(leases))
	}
	for _, l := range leases {
		l.Subject.(*modelLease).calls++
		if ml := l.Subject.(*modelLease); ml.over || !ml.renew || ml.group != group ||
			!start.Before(ml.deadline) || ml.calls > 6 {
			m.t.Errorf("renewed for no reason: %+v", ml)
		}
	}
	// An odd number of nanoseconds keeps replies apart from deadlines and from the test's steps.
	latency := time.Duration(m.random.IntN(4))*m.upTo(2*time.Second) + 333
	if m.random.IntN(10) == 0 {
		latency += m.upTo(lease) // there is another call meanwhile
	}
	verdict := m.random.IntN(10)
	m.mu.Unlock()

	time.Sleep(latency)

	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range leases {
		l.Subject.(*modelLease).calls--
	}
	if verdict < 4 {
		return nil, errNode
	}
	held := make([]Outcome, len(leases))
	for i, l := range leases {
		ml := l.Subject.(*modelLease)
		held[i] = Held
		if m.random.IntN(20) == 0 {
			held[i] = Gone
		}
		switch {
		case ml.over || !time.Now().Before(ml.deadline):
		case held[i] == Held:
			ml.extend(Deadline(start, lease))
		default:
			ml.over, ml.expected = true, ErrGone
		}
	}
	return held, nil
}

// modelGroup implements Options.Group.
func modelGroup(l *Lease) (group string, split uint64) { return l.Subject.(*modelLease).group, 0 }

func (ml *modelLease) extend(deadline time.Time) {
	if deadline.After(ml.deadline) {
		ml.deadline = deadline
	}
}

// Lost implements [Subject].
func (ml *modelLease) Lost(_ *Lease, reason error) { ml.lose(reason) }

func (m *model) add(w *Watchdog) {
	ml := &modelLease{deadline: time.Now().Add(m.upTo(2 * lease)), renew: m.random.IntN(3) > 0,
		group: fmt.Sprint(m.random.IntN(3))}
	ml.lease = &Lease{Subject: ml}
	ml.lose = func(reason error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if ml.lost != nil {
			m.t.Errorf("lost twice")
		}
		ml.lost = reason
		if errors.Is(reason, ErrExpired) {
			ml.over, ml.expected = true, ErrExpired
			if !time.Now().Equal(ml.deadline) {
				m.t.Errorf("deadline reported %s late", time.Since(ml.deadline))
			}
		}
	}
	m.leases = append(m.leases, ml)
	w.Add(ml.lease, ml.deadline, ml.renew)
}

// step does one random thing to a random lease, and returns how long to wait before the next step.
// The watchdog is at rest meanwhile, except for calls in flight.
func (m *model) step(w *Watchdog) (pause time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()

	pause = m.upTo(3 * time.Second).Round(time.Millisecond)
	if len(m.leases) == 0 || m.random.IntN(3) == 0 {
		m.add(w)
		return pause
	}
	ml := m.leases[m.random.IntN(len(m.leases))]
	switch m.random.IntN(3) {
	case 0:
		require.Equal(m.t, !ml.over, w.Remove(ml.lease))
		ml.over = true
	case 1:
		deadline := time.Now().Add(m.upTo(2 * lease))
		w.Extend(ml.lease, deadline)
		if !ml.over {
			ml.extend(deadline)
		}
	case 2:
		renew := m.random.IntN(2) == 0
		w.SetRenew(ml.lease, renew)
		if !ml.over {
			ml.renew = renew
		}
	}
	return pause
}

func (m *model) check(w *Watchdog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	watching, renewable := 0, 0
	for _, ml := range m.leases {
		// Without require, which is slow under the race detector.
		if !errors.Is(ml.lost, ml.expected) || !ml.lease.Deadline().Equal(ml.deadline) ||
			!ml.over && !time.Now().Before(ml.deadline) {
			m.t.Fatalf("%+v, until %v", ml, ml.lease.Deadline())
		}
		if !ml.over {
			watching++
			if ml.renew {
				renewable++
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Len(m.t, w.deadlines, watching)
	require.Equal(m.t, renewable, w.renewable)
	for i, l := range w.deadlines {
		if i != int(l.index) || l.until() < w.deadlines[max(i-1, 0)/2].until() {
			m.t.Fatalf("no heap at %d", i)
		}
	}
}

func TestWatchdogAgreesWithItsModel(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &model{t: t, random: rand.New(rand.NewPCG(seed, 0))}
				w, _ := watch(t, Options{Renew: m.renew, Group: modelGroup, batchSize: 3})
				for range 300 {
					sleep(m.step(w))
					m.check(w)
				}
			})
		})
	}
}
