package wait_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

const (
	tenth = 300 * time.Millisecond // of a lease of 3 s
	least = 5 * time.Millisecond
)

// taught returns a pool whose server took that long for its replies.
func taught(times int, took time.Duration) *wait.Pool {
	w := wait.NewPool(nil)
	for range times {
		w.Answered(took)
	}
	return w
}

func TestTimeoutIsThreeTimesWhatNearlyAllRepliesTook(t *testing.T) {
	for _, c := range []struct {
		took, timeout time.Duration
	}{
		{100 * time.Microsecond, 5 * time.Millisecond},
		{2 * time.Millisecond, 6 * time.Millisecond},
		{30 * time.Millisecond, 90 * time.Millisecond},
		{80 * time.Millisecond, 240 * time.Millisecond},
		{200 * time.Millisecond, tenth},
		{time.Hour, tenth},
	} {
		for _, times := range []int{1, 2, 19, 20, 32, 1000} {
			require.Equal(t, c.timeout, taught(times, c.took).Timeout(least, tenth),
				"after %d replies that took %v", times, c.took)
		}
	}
}

func TestOneLateReplyInTwentyDoesNotMakeTheTimeoutLong(t *testing.T) {
	w := taught(1000, time.Millisecond)
	w.Answered(time.Hour)
	require.Equal(t, 5*time.Millisecond, w.Timeout(least, tenth))
}

// When a server that hung resumes, all calls in flight get their replies at once.
func TestServerThatHungIsForgottenAfterThirtyOneReplies(t *testing.T) {
	w := taught(wait.Workers, time.Hour)
	for range 30 {
		w.Answered(time.Millisecond)
		require.Equal(t, tenth, w.Timeout(least, tenth), "and never more than that")
	}
	w.Answered(time.Millisecond)
	require.Equal(t, 5*time.Millisecond, w.Timeout(least, tenth))
}
