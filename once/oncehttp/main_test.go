package oncehttp_test

import (
	"testing"

	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }
