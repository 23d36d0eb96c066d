//go:build interop

package redisson_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wire"
)

func fencingTokensGrowAcrossSides(t *testing.T, s *site) {
	l := both(fenced).hold
	var (
		mu     sync.Mutex // the race detector does not know that l excludes
		tokens []int64    // in the order of the acquisitions; guarded by mu
	)
	const actors, acquisitions = 2, 10 // of each side
	var working []<-chan outcome
	for _, of := range []side{javaSide, goSide} {
		for range actors {
			a := of.newActor(t, s)
			working = append(working, inBackground(func() error {
				for i := range acquisitions {
					acquire := func() error { return a.lock(l, longLease) }
					if i%2 == 0 {
						acquire = func() error { return a.tryLock(l, time.Duration(longLease), longLease) }
					}
					if err := acquire(); err != nil {
						return err
					}
					mu.Lock()
					tokens = append(tokens, a.token())
					mu.Unlock()
					if err := a.unlock(l); err != nil {
						return err
					}
				}
				return nil
			}))
		}
	}
	for _, w := range working {
		acquired(t, w)
	}
	want := make([]int64, 2*actors*acquisitions)
	for i := range want {
		want[i] = int64(i + 1)
	}
	require.Equal(t, want, tokens)
	require.Equal(t, int64(len(want)),
		s.node(t, l.name()).DoInt(t, "INCRBY", wire.Prefix("redisson_lock_token", l.name()), "0"))
}
