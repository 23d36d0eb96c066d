package waitqueue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// crowd returns queues with a waiter for each owner of "order", the first one as the head. All take
// turns.
func crowd(owners ...string) (*Queues[string, int], []*Waiter[string, int]) {
	qs := New[string, int]()
	var all []*Waiter[string, int]
	for _, owner := range owners {
		w := qs.Join("order", owner, time.Second, func() (int, bool) { return 0, true })
		w.TakeTurns()
		all = append(all, w)
	}
	return qs, all
}

// lasting returns a streak that began in the future, so that its 100 ms do not pass, however long
// the process of the test stands still.
func lasting(here int) Streak {
	return Streak{Here: here, HereSince: time.Now().Add(time.Hour)}
}

func TestOnlyAHeadThatTheServerDoesNotKnowGetsATurn(t *testing.T) {
	turn := Turn{Owner: "first", Until: time.Now().Add(time.Second)}
	streak := lasting(1)
	for name, before := range map[string]func(*Queues[string, int], *Waiter[string, int]){
		"takes no turns":  func(_ *Queues[string, int], w *Waiter[string, int]) { w.turns = false },
		"asks":            func(_ *Queues[string, int], w *Waiter[string, int]) { w.Ask(false, false) },
		"is about to ask": func(_ *Queues[string, int], w *Waiter[string, int]) { w.Turn() },
		"is offered": func(qs *Queues[string, int], _ *Waiter[string, int]) {
			qs.Offer("order", streak, false)
		},
		"has the lock": func(qs *Queues[string, int], _ *Waiter[string, int]) {
			qs.Pass("order", streak, turn)
		},
		"has been registered": func(qs *Queues[string, int], _ *Waiter[string, int]) {
			qs.Offer("order", streak, true).Settle(Release{Outcome: SuccessorRegistered, Ticket: 1})
		},
		"may be registered": func(qs *Queues[string, int], _ *Waiter[string, int]) {
			qs.Offer("order", streak, true).Settle(Release{Outcome: Uncertain})
		},
		"may be registered late": func(qs *Queues[string, int], _ *Waiter[string, int]) {
			qs.Offer("order", streak, true).Settle(Release{Outcome: ToAll, Late: true})
		},
	} {
		qs, all := crowd("a", "b")
		before(qs, all[0])
		require.False(t, qs.Pass("order", streak, turn), name)
	}
	qs, all := crowd("a", "b")
	require.False(t, qs.Pass("another", streak, turn))
	require.True(t, qs.Pass("order", streak, turn))
	got, ok := all[0].Turn()
	require.True(t, ok)
	require.Equal(t, turn, got.Turn)
	require.Equal(t, 2, got.Streak.Here)
}

func TestTurnsEndAfter16HandOversAnd100Milliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			here int
			ago  time.Duration
			pass bool
		}{{15, 99 * time.Millisecond, true}, {16, 0, false}, {1, 100 * time.Millisecond, false}} {
			qs, _ := crowd("a")
			s := Streak{Here: c.here, HereSince: time.Now().Add(-c.ago)}
			require.Equal(t, c.pass, qs.Pass("order", s, Turn{Owner: "first"}), c)
		}
		qs, _ := crowd("a")
		require.False(t, qs.Pass("order", Streak{}, Turn{Owner: "first"}), "it is unknown since when")
	})
}

// A turn that comes just before a waiter leaves, or asks, must not be forgotten.
func TestEachTurnIsTakenOrReported(t *testing.T) {
	turn, streak := Turn{Owner: "first"}, lasting(0)
	qs, all := crowd("a", "b")
	require.True(t, qs.Pass("order", streak, turn))
	remains, _ := all[0].Leave(false, true)
	require.Equal(t, Nothing, remains, "nothing of its own")
	require.Equal(t, turn, all[0].UnusedTurn())

	require.True(t, qs.Pass("order", streak, turn), "the next head")
	_, _ = all[1].Leave(true, false)
	require.Zero(t, all[1].UnusedTurn(), "it has taken the turn")

	qs, all = crowd("a")
	require.True(t, qs.Pass("order", streak, turn))
	_, ok := all[0].Turn()
	require.True(t, ok)
	all[0].Decline()
	_, ok = all[0].Turn()
	require.False(t, ok, "declined")
	all[0].Ask(false, false)
	all[0].Reply(0, time.Now())
	_, _ = all[0].Leave(false, true)
	require.Zero(t, all[0].UnusedTurn())
}
