package multilock_test

import (
	"testing"

	"holdfast/internal/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m, nil) }
