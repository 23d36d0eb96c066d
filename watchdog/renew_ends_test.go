package watchdog

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A hook around the client of the store may end the goroutine of a call. That is a call without
// outcome: it is tried again soon, is reported, and takes no place for longer.
func TestLeaseIsRenewedAlthoughRenewEndsItsGoroutine(t *testing.T) {
	for name, ends := range map[string]func(n int) bool{
		"at first":        func(n int) bool { return n < 10 },
		"again and again": func(n int) bool { return n%2 == 1 },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := &store{}
				s.replyWith(func(_ context.Context, c call) ([]Outcome, error) {
					if ends(len(s.seen())) {
						runtime.Goexit()
					}
					return all(c.leases, true), nil
				})
				var failed failures
				w := watch(t, Options{Renew: s.renew, OnFailure: failed.add})
				_, lost := addNew(w, "node", true)
				sleep(lease / 2)
				calls := s.seen()
				require.GreaterOrEqual(t, len(calls), 2)
				require.Less(t, calls[1].at.Sub(calls[0].at), time.Second, "not tried again soon")
				require.ErrorIs(t, failed.seen()[0].err, errEnded)
				sleep(150 * lease)
				require.Empty(t, lost.seen())
				w.Close()
			})
		})
	}
}
