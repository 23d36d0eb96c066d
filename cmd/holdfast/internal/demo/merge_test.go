package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEventsAreOrderedByTime(t *testing.T) {
	var m merge
	for _, at := range []int{5, 3, 9, 4} {
		m.add(event{At: time.Duration(at) * ms})
	}
	require.Empty(t, m.due(mergeDelay))
	require.Equal(t, []event{{At: 3 * ms}, {At: 4 * ms}}, m.due(mergeDelay+4*ms))
	m.add(event{At: 4 * ms}) // a late event comes at once
	require.Equal(t, []event{{At: 4 * ms}, {At: 5 * ms}}, m.due(mergeDelay+8*ms))
	require.Equal(t, []event{{At: 9 * ms}}, m.due(mergeDelay+9*ms))
	require.Empty(t, m.pending)
}
