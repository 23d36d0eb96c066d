package chaos_test

import (
	"testing"

	"holdfast/integration/chaos"
	"holdfast/internal/locktest"
)

func TestMain(m *testing.M) {
	locktest.Main(m, map[string]func([]string) error{chaos.Role: chaos.Client})
}
