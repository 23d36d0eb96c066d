package history

import (
	"testing"

	"go.uber.org/goleak"

	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.FixSeed()
	redistest.FixChecks(50)
	goleak.VerifyTestMain(m)
}
