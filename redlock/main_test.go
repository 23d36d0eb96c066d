package redlock_test

import (
	"testing"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

// processes has the parts that the test binary can play as a client process. Test files add theirs
// in init.
var processes = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	redistest.FixChecks(500)
	locktest.Main(m, processes)
}
