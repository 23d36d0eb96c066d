package redistest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTakenPortIsToldFromOtherReasonsNotToStart(t *testing.T) {
	for text, taken := range map[string]bool{
		"the server ended at once: Could not create server TCP listening socket 127.0.0.1:22000: bind: Address already in use":                       true,
		"start container: driver failed programming external connectivity: Error starting userland proxy: listen tcp4: bind: address already in use": true,
		"start container: driver failed programming external connectivity: Bind for 127.0.0.1:28941 failed: port is already allocated":               true,
		"create container of redis:7: No such image: redis:7":                                                                                        false,
	} {
		assert.Equal(t, taken, portTaken(errors.New(text)), text)
	}
}
