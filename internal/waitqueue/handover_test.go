package waitqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

// The reply to the release has its ticket, so that the message about the grant is enough.
func TestSuccessorThatAReleaseRegisteredIsGrantedTheLockWithoutAsking(t *testing.T) {
	qs, sent := New[string, int](), time.Now()
	w := qs.Join("order", "client:1", time.Second, func() (int, bool) { return 0, true })
	o := qs.Offer("order", Streak{Here: longestStreak}, true)
	require.Same(t, w, o.Successor)
	require.False(t, o.First)
	require.False(t, o.Settle(Release{Outcome: SuccessorRegistered, Ticket: 7, Sent: sent}))
	order := func(name string) bool { return name == "order" }
	require.True(t, qs.Deliver(Message{Owner: w.Owner, Ticket: 7}, order))
	b := wait.NewBudget(t.Context(), nil, time.Hour)
	defer b.Stop()
	reason, grant := w.Park(b, time.Hour, nil)
	require.Equal(t, HasGrant, reason)
	require.Equal(t, sent, grant.Since)

	// Too little is left of it for the waiter, so it asks: only the reply counts.
	require.True(t, w.Ask(true, true))
	_, granted := w.Reply(0, sent)
	require.False(t, granted, "it has the lock by the grant that it gave up")
}
