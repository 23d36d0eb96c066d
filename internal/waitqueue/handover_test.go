package waitqueue

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/internal/transition"
	"holdfast/internal/wait"
)

func TestMain(m *testing.M) {
	transition.Bug = func(bug string) { panic(bug) }
	redistest.FixChecks(2000) // a hundred programs are few for what takes several steps
	redistest.VerifyMain(m)
}

// What follows are promises to waiters that the model of hand-overs does not see.

func join(qs *Queues[string, int], owner string) *Waiter[string, int] {
	return qs.Join("order", owner, time.Second, func() (int, bool) { return 7, true })
}

// why returns why a waiter wakes up, Ended if it does not, and its grant.
func why(w *Waiter[string, int]) (Reason, Grant) {
	return w.Wait(wait.NewBudget(context.Background(), nil, time.Second))
}

func orders(name string) bool { return name == "order" }

func TestWaiterIsWokenForTheGreatestReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, start := New[string, int](), time.Now()
		head, second, third := join(qs, "a"), join(qs, "b"), join(qs, "c")
		b, also := wait.NewBudget(t.Context(), nil, time.Hour), make(chan struct{}, 1)
		for pause, fired := range map[time.Duration]bool{time.Minute: false, wait.Unlimited: true} {
			if fired {
				also <- struct{}{}
			}
			reason, _ := head.Park(b, pause, also)
			require.Equal(t, Paused, reason)
		}
		require.Equal(t, time.Minute, time.Since(start))
		head.Leave(false, false)
		require.Equal(t, BecameHead, first(why(second)))
		second.Leave(false, true)
		require.Equal(t, Retry, first(why(third)))
		require.Equal(t, Ended, first(why(third)))
		for outcome, want := range map[Outcome]Reason{ToAll: Ended, ToNobody: Retry, Uncertain: Retry} {
			qs.Offer("order", Streak{}, true).Settle(Release{Outcome: outcome})
			require.Equal(t, want, first(why(third)))
		}
		qs.Offer("order", Streak{}, true).Settle(Release{Outcome: ToNobody})
		qs.Offer("order", Streak{}, true).Settle(
			Release{Outcome: ToSuccessor, Sent: start, Fence: 9})
		reason, grant := why(third)
		require.Equal(t, HasGrant, reason)
		require.Equal(t, Grant{Since: start, Local: true, Fence: 9,
			Streak: Streak{Here: 1, HereSince: start}, Registered: true}, grant)
	})
}

func first(r Reason, _ Grant) Reason { return r }

func TestMessageIsAGrantOnlyWithTheTicketOfTheLatestRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, of := range []struct {
			registered, granted Ticket
			want                Reason
		}{{7, 7, HasGrant}, {7, 6, Ended}, {7, 8, Retry}, {0, 7, Retry}} {
			qs, sent := New[string, int](), time.Now()
			w := join(qs, "a")
			require.False(t, qs.Deliver(Message{Owner: "a"}, orders), "it is not registered")
			require.True(t, w.Ask(true, true))
			w.Reply(of.registered, sent)
			m := Message{Owner: "a", Ticket: of.granted, Fence: 9}
			require.False(t, qs.Deliver(m, func(string) bool { return false }))
			time.Sleep(time.Second)
			require.True(t, qs.Deliver(m, orders))
			reason, grant := why(w)
			require.Equal(t, of.want, reason)
			if reason == HasGrant {
				require.Equal(t, Grant{Since: sent, Fence: 9, Registered: true}, grant)
			}
		}
		// While a request is under way, it waits for the reply, which has the ticket.
		qs, sent := New[string, int](), time.Now()
		w := join(qs, "a")
		w.Ask(true, true)
		require.True(t, qs.Deliver(Message{Owner: "a", Ticket: 7}, orders))
		grant, granted := w.Reply(7, sent)
		require.True(t, granted)
		require.Equal(t, sent, grant.Since)
	})
}

// The reply to the release has its ticket, so that the message about the grant is enough.
func TestSuccessorThatAReleaseRegisteredIsGrantedTheLockWithoutAsking(t *testing.T) {
	qs, sent := New[string, int](), time.Now()
	w := join(qs, "a")
	o := qs.Offer("order", Streak{Here: mostHere}, true)
	require.Same(t, w, o.Successor)
	require.False(t, o.Settle(Release{Outcome: SuccessorRegistered, Ticket: 7, Sent: sent}))
	require.True(t, qs.Deliver(Message{Owner: "a", Ticket: 7}, orders))
	reason, grant := why(w)
	require.Equal(t, HasGrant, reason)
	require.Equal(t, sent, grant.Since)

	// Too little is left of it for the waiter, so it asks: only the reply counts.
	require.True(t, w.Ask(true, true))
	_, granted := w.Reply(0, sent)
	require.False(t, granted, "it has the lock by the grant that it gave up")
}

func TestRequestRegistersWhoHearsGrantsOrMayBeRegistered(t *testing.T) {
	w := join(New[string, int](), "a")
	for _, of := range []struct{ registers, hears, want bool }{
		{false, true, false}, {true, false, false}, {true, true, true}, {true, false, true},
		{false, true, false},
	} {
		require.Equal(t, of.want, w.Ask(of.registers, of.hears), of)
		w.Reply(0, time.Now())
	}
}

func TestLockStaysInTheProcessFor16HandOversOr100Milliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, now := New[string, int](), time.Now()
		join(qs, "a")
		time.Sleep(time.Second)
		ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
		for _, of := range []struct {
			streak Streak
			first  bool
			after  Streak
		}{
			{Streak{}, true, Streak{Here: 1, HereSince: now}},
			{Streak{3, 5, 15, ago(99 * time.Millisecond)}, true,
				Streak{3, 5, 16, ago(99 * time.Millisecond)}},
			{Streak{3, 0, 16, time.Now()}, false, Streak{4, 8, 1, now}},
			{Streak{3, 5, 1, ago(100 * time.Millisecond)}, false, Streak{4, 5, 1, now}},
		} {
			o := qs.Offer("order", of.streak, false)
			require.Equal(t, of.first, o.First)
			require.Equal(t, of.after, o.After(now, 8))
			o.Settle(Release{Outcome: ToAll})
		}
	})
}

func TestLastToLeaveEndsTheQueueAndLearnsWhatMayRemain(t *testing.T) {
	qs := New[string, int]()
	require.Nil(t, qs.Join("order", "a", 0, func() (int, bool) { return 0, false }))
	try := qs.Try("order")
	require.NotNil(t, try, "there is no queue")
	require.Nil(t, qs.Try("order"), "another one tries")
	try.EndTry()

	head := join(qs, "a")
	require.Nil(t, qs.Try("order"), "there is a queue")
	head.Queue().Answered(true)
	late := join(qs, "b") // what the head was told holds for it
	require.True(t, head.Waited() && late.Waited())
	head.Queue().Answered(false)
	require.False(t, join(qs, "c").Waited())
	n, refusals := qs.Waiters(orders)
	require.Equal(t, []int{3, 1}, []int{n, refusals})

	head.Ask(true, true)
	head.Reply(0, time.Now())
	remains, data := head.Leave(false, false)
	require.Equal(t, Something, remains)
	require.Nil(t, data)
	qs.Offer("order", Streak{}, true).Settle(Release{Outcome: Uncertain, Late: true})
	remains, _ = late.Leave(false, false)
	require.Equal(t, Late, remains)
	remains, data = qs.byName["order"].head().Leave(false, false)
	require.Equal(t, Nothing, remains)
	require.Equal(t, 7, *data)
	require.NotNil(t, qs.Try("order"))
}

func TestTheDocumentHasTheLimitsOfAStreak(t *testing.T) {
	text, err := os.ReadFile("../../docs/handover.md")
	require.NoError(t, err)
	require.Contains(t, string(text), fmt.Sprintf("at most %d hand-overs or %d ms", mostHere,
		longestHere.Milliseconds()))
}
