//go:build interop

package redisson_test

import (
	"testing"

	"holdfast/internal/redistest"
)

// atOnce bounds the tests that run at a time. Their JVMs work, while other tests mostly wait.
const atOnce = 4

func TestMain(m *testing.M) {
	redistest.BoundParallel(atOnce)
	redistest.VerifyMain(m)
}
