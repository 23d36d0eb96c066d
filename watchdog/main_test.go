package watchdog

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loss is one call of OnLost.
type loss struct {
	at     time.Time
	reason error
}
