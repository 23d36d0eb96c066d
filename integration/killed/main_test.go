//go:build redis

package killed_test

import (
	"testing"

	"holdfast/internal/locktest"
)

func TestMain(m *testing.M) {
	locktest.Main(m, map[string]func([]string) error{role: work})
}
