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

func TestAnInterruptIsASignal(t *testing.T) {
	t.Parallel()
	terminal, ctx := start(t, `echo ready; exec sleep 100`)
	require.NoError(t, terminal.WaitForText(ctx, "ready"))
	require.NoError(t, terminal.Send("\x03"))
	status, err := terminal.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 130, status)
}

func TestAnInterruptDiscardsNothing(t *testing.T) {
	t.Parallel()
	terminal, ctx := start(t, `stty -a | tr ' ' '\n' | grep flsh`)
	require.NoError(t, terminal.WaitForText(ctx, "noflsh"))
	require.NotContains(t, terminal.Screen(), "-noflsh")
}

func TestAProgramThatEndsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	terminal, ctx := start(t, `echo bye`)
	err := terminal.WaitForText(ctx, "hello")
	require.ErrorContains(t, err, "ended before")
	require.ErrorContains(t, err, "bye")
}

// Answers that come after the key that ends the program would be typed at its shell.
func TestAnswersComeBeforeTheKeysOfThoseWhoSeeTheScreen(t *testing.T) {
	t.Parallel()
	for range 100 {
		terminal, ctx := start(t, `stty raw -echo; printf '\033[?2026$p\033[?2027$pshown'
			head -c 23 | tr '\033' '^'`)
		require.NoError(t, terminal.WaitForText(ctx, "shown"))
		require.NoError(t, terminal.Send("q"))
		_, err := terminal.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, "shown^[?2026;0$y^[?2027;0$yq\n", terminal.Screen())
	}
}
