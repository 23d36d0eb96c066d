package history

import (
	"testing"

	"go.uber.org/goleak"

	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.FixSeed()
	goleak.VerifyTestMain(m)
}
