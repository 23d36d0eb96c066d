package lua_test

import (
	"testing"

	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) {
	// Each model draws twice as many programs; make rapid draws more.
	redistest.FixChecks(30)
	redistest.VerifyMain(m)
}
