package redlock_test

import (
	"testing"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.FixChecks(500)
	locktest.Main(m, nil)
}
