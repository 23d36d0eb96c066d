package waitqueue

import (
	"testing"

	"go.uber.org/goleak"

	"holdfast/internal/transition"
)

func TestMain(m *testing.M) {
	transition.Bug = func(bug string) { panic(bug) }
	goleak.VerifyTestMain(m)
}
