package watchdog

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCloseEndsCallsInFlightAndReportsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var ended error
		failures := 0
		s := &store{reply: func(ctx context.Context, _ call) ([]Outcome, error) {
			<-ctx.Done()
			ended = context.Cause(ctx)
			return nil, ended
		}}
		w := New(
			Options{
				Lease:     lease,
				Renew:     s.renew,
				OnFailure: func(string, int, error) { failures++ },
			},
		)
		_, lost := addNew(w, "node", true)
		_, explicitLost := addNew(w, "node", false)
		sleep(lease / 3)
		require.Len(t, s.seen(), 1)

		w.Close()

		require.ErrorIs(t, ended, context.Canceled, "Close returned before the call in flight")
		require.Zero(t, failures)
		w.Close()
		_, addedLate := addNew(w, "node", true)
		sleep(2 * lease)
		require.Empty(t, lost.seen())
		require.Empty(t, explicitLost.seen())
		require.Empty(t, addedLate.seen())
		require.Len(t, s.seen(), 1)
	})
}

func TestDeadlineThatComesDuringCloseIsNotReported(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := New(Options{Lease: lease, Renew: (&store{}).renew})
		callback := make(chan struct{})
		w.Add(&Lease{OnLost: func(_ *Lease, _ error) { <-callback }}, time.Now(), false)
		_, lost := addNew(w, "node", false)
		sleep(lease)

		closed := make(chan struct{})
		go func() { w.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Fatal("Close did not wait for a running callback")
		default:
		}
		close(callback)
		<-closed
		require.Empty(t, lost.seen())
	})
}
