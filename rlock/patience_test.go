package rlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An answer may come in the very moment in which the time is over. Whoever takes the answer then must still find out.
func TestTimeThatIsOverStaysOver(t *testing.T) {
	p := (&Client{}).patience(t.Context(), time.Millisecond)
	defer p.stop()
	for range 3 {
		select {
		case <-p.timeout():
		case <-time.After(time.Second):
			require.FailNow(t, "the time has begun anew")
		}
		require.False(t, p.sleep(time.Hour, nil))
	}
}
