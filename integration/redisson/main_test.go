//go:build interop

package redisson_test

import (
	"testing"

	"holdfast/internal/locktest"
)

// processes has the parts that the test binary can play as a client process. Test files add theirs
// in init.
var processes = map[string]func(args []string) error{}

func TestMain(m *testing.M) { locktest.Main(m, processes) }
