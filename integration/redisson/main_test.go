//go:build interop

package redisson_test

import (
	"testing"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

// processes has the parts that the test binary can play as a client process. Test files add theirs
// in init.
var processes = map[string]func(args []string) error{}

// atOnce bounds the tests that run at a time. Their JVMs work, while other tests mostly wait.
const atOnce = 4

func TestMain(m *testing.M) {
	redistest.BoundParallel(atOnce)
	locktest.Main(m, processes)
}
