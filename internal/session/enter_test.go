package session

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The last user closes a session just as it is entered. Open with its key returns another one from
// then on, which that Close must leave alone.
func TestCloseLeavesAnotherSessionOfTheKeyAlone(t *testing.T) {
	all := New[string, int]()
	var s Session[string, int]
	all.OpenNew(&s, "order 7")
	var users sync.WaitGroup
	all.mu.Lock()
	s.entered.Store(true) // Enter has begun
	users.Go(s.Close)
	for s.users.Load() > 0 {
		runtime.Gosched()
	}
	all.mu.Unlock()
	next := all.Open("order 7")
	users.Wait()
	require.Same(t, next, all.Find("order 7"))
	require.NotSame(t, &s, next)
}
