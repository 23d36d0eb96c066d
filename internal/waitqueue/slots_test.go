package waitqueue_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/waitqueue"
)

// A client begins with 32 slots. With 600 names in them, all other names would meet one. With 600
// names in 512 slots, two thirds would.
func TestManyQueuesGetManySlots(t *testing.T) {
	t.Parallel()
	queues := waitqueue.New[int, struct{}]()
	begin := func() (struct{}, bool) { return struct{}{}, true }
	for name := range 600 {
		require.True(t, queues.Join(name, "", 0, begin).JoinedAsHead)
	}
	for name := range 600 {
		require.Nil(t, queues.Try(name), "its queue is seen")
	}
	alone := 0
	for name := range 1000 {
		slot := queues.Try(-1 - name)
		if slot != nil {
			alone++
			slot.EndTry()
		}
	}
	require.Greater(t, alone, 850)
}
