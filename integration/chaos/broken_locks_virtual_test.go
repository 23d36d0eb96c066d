//go:build nightly && !race

package chaos_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBrokenLocksAreFoundInVirtualTime builds this test binary from sources that were broken on
// purpose, and has it play scenarios in a bubble until their judges find the mistake.
func TestBrokenLocksAreFoundInVirtualTime(t *testing.T) {
	for _, b := range broken {
		t.Run(b.mistake, func(t *testing.T) {
			play := exec.Command(buildBroken(t, edited(t, b.edits)), "-test.v",
				"-test.run=^TestMistakeIsFoundInVirtualTime$")
			play.Env = append(os.Environ(), mistake+"="+b.mistake)
			output, err := play.CombinedOutput()
			t.Logf("%s", output)
			require.NoError(t, err)
		})
	}
}
