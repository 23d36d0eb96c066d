package fenced

import (
	"flag"
	"testing"

	"holdfast/internal/locktest"
)

// writes is how many writes the test of stale writes makes to each resource with a fence. Half of
// them are stale.
var writes = flag.Int("writes", 80, "how many writes are made to each resource")

// processes are the parts that the test binary can play.
var processes = make(map[string]func(args []string) error)

func TestMain(m *testing.M) { locktest.Main(m, processes) }
