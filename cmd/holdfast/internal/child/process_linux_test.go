package child

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whenever a command ends, run looks at all processes, of which a machine may have thousands.
func TestALookAtAProcessCostsLittle(t *testing.T) {
	var all []process
	objects := testing.AllocsPerRun(3, func() { all = processes() })
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
