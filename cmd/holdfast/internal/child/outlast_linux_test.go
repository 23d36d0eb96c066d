package child

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Each look reads the state of all processes of the machine.
func TestProcessesThatStayAreLookedAtMoreAndMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, last := 0, time.Time{}
		living := crew{group: unix.Getpgrp()}.outlast(4*time.Second, func(p process) bool {
			if p.pid == os.Getpid() && time.Now() != last { // once in each look
				looks, last = looks+1, time.Now()
			}
			return true
		})
		require.NotEmpty(t, living)
		require.LessOrEqual(t, looks, 30)
	})
}
