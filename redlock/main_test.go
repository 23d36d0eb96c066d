package redlock_test

import (
	"testing"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

// processes are the parts that the test binary can play as a client process of its own. Test files add theirs in init.
var processes = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	redistest.FixChecks(500)
	locktest.Main(m, processes)
}
