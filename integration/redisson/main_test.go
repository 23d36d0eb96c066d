//go:build interop

package redisson_test

import (
	"testing"

	"holdfast/internal/locktest"
)

// processes are the parts that the test binary can play as a client process of its own. Test files add theirs in init.
var processes = map[string]func(args []string) error{}

func TestMain(m *testing.M) { locktest.Main(m, processes) }
