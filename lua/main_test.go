package lua_test

import (
	"cmp"
	"os"
	"testing"

	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) {
	// Each model draws twice as many programs; make nightly draws more.
	redistest.FixChecks(30)
	// Scripts use no key that is not declared, except those that say so.
	_ = os.Setenv(redistest.Scripts, cmp.Or(os.Getenv(redistest.Scripts), "declared"))
	redistest.VerifyMain(m)
}
