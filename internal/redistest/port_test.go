package redistest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/portlock"
)

func TestPortOfAKilledServerStaysReserved(t *testing.T) {
	t.Parallel()
	var port int
	taken := func() error {
		reserved, err := portlock.Among(port, port)
		reserved.Release()
		return err
	}
	for try := 0; ; try++ {
		t.Run("while its test goes on", func(t *testing.T) {
			s := Start(t)
			port = s.port
			s.Kill(t)
			require.Error(t, taken())
			s.Restart(t)
			require.Error(t, taken())
		})
		// After the test another process may have been quicker.
		if taken() == nil {
			return
		}
		require.Less(t, try, 3, "the port is still reserved")
	}
}

func TestTakenPortIsDistinguishedFromOtherFailuresToStart(t *testing.T) {
	for text, taken := range map[string]bool{
		"the server ended at once: Could not create server TCP listening socket 127.0.0.1:22000: " +
			"bind: Address already in use": true,
		"start container: driver failed programming external connectivity: Error starting " +
			"userland proxy: listen tcp4: bind: address already in use": true,
		"start container: driver failed programming external connectivity: Bind for " +
			"127.0.0.1:28941 failed: port is already allocated": true,
		"create container of redis:7: No such image: redis:7": false,
	} {
		assert.Equal(t, taken, portTaken(errors.New(text)), text)
	}
}
