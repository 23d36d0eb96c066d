//go:build unix

package terminal

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, script string) (*Terminal, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	terminal, err := Start(exec.CommandContext(ctx, "sh", "-c", script), 40, 5)
	require.NoError(t, err)
	t.Cleanup(terminal.Stop)
	return terminal, ctx
}

func TestTheScreenShowsWhatIsWritten(t *testing.T) {
	t.Parallel()
	terminal, ctx := start(t, `printf 'one\ntwo\033[1A\rONE'; read x; echo "got $x"; exit 3`)
	require.NoError(t, terminal.WaitForText(ctx, "ONE\ntwo"))
	require.NoError(t, terminal.Send("yes\r"))
	require.NoError(t, terminal.WaitForText(ctx, "got yes"))
	status, err := terminal.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 3, status)
}
