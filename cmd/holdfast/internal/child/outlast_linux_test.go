package child

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Each look reads the state of all processes of the machine.
func TestProcessesThatStayAreLookedAtMoreAndMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := map[time.Time]bool{}
		living := crew{group: unix.Getpgrp()}.outlast(4*time.Second, func(process) bool {
			looks[time.Now()] = true
			return true // this one is expected to end
		})
		require.NotEmpty(t, living)
		require.NotEmpty(t, looks)
		require.LessOrEqual(t, len(looks), 30)
	})
}
