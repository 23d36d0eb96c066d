package recipes

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlocktest"
)

func TestEachKeyIsHandledByOneWorkerAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		const names = 10
		keys := make(chan string)
		go func() {
			defer close(keys)
			for i := range 50 * names {
				keys <- fmt.Sprint(i % names)
			}
		}()
		handled := atomic.Int64{}
		inside := [names]atomic.Bool{}
		consume(t.Context(), redis.Client(), keys, func(_ context.Context, key string) error {
			of := &inside[key[0]-'0']
			if !of.CompareAndSwap(false, true) {
				t.Errorf("key %s is handled twice at once", key)
			}
			time.Sleep(time.Millisecond)
			handled.Add(1)
			of.Store(false)
			return nil
		})
		require.EqualValues(t, 50*names, handled.Load())
	})
}
