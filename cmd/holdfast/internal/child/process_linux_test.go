package child

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestALookAtAProcessCostsLittle(t *testing.T) {
	var all []process
	objects := testing.AllocsPerRun(3, func() { all = processes(anybody) })
	require.Less(t, objects/float64(len(all)), 40.) // 98 if the files of each process are listed
	own := all[0]
	for _, p := range all {
		if p.pid == os.Getpid() {
			own = p
		}
	}
	require.Equal(t, os.Getppid(), own.parent)
	require.Equal(t, "child.test", own.name)
	require.False(t, own.zombie)
}

// Whenever a command ends, run looks for what it left behind. A machine may have thousands of other
// processes.
func TestALookForACrewReadsNoOtherProcess(t *testing.T) {
	own, err := unix.Getsid(0)
	require.NoError(t, err)
	require.NotEmpty(t, crew{session: own}.candidates())
	require.NotEmpty(t, crew{group: unix.Getpgrp()}.candidates())
	nobody := crew{group: os.Getpid(), session: os.Getpid()}
	require.Empty(t, nobody.candidates())
	each := testing.AllocsPerRun(3, func() { nobody.candidates() }) /
		float64(len(processes(anybody)))
	require.Less(t, each, 5.) // 20 if it is read
}
