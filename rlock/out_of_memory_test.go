//go:build redis

package rlock_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Redis refuses SUBSCRIBE when it is out of memory from the patches of May 2026 on: 6.2.22, 7.2.14,
// 7.4.9 and the newer versions. Nothing wakes a waiter then, but it still waits.
func TestServerOutOfMemoryStillLetsWaitersWait(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	k := kindNamed("reentrant")
	hold := take(t, k.lock(c, k.name), longLease)
	end := befall(t, s, "is out of memory")
	waiter := lockInBackground(t.Context(), k.lock(other, k.name), longLease)
	if strings.Contains(fmt.Sprint(s.Do(t, "COMMAND", "INFO", "subscribe")), "denyoom") {
		refused := regexp.MustCompile(`cmdstat_subscribe:.*rejected_calls=[1-9]`)
		eventually(t, func() bool {
			return refused.MatchString(s.DoString(t, "INFO", "commandstats"))
		}, "the client did not try to subscribe")
		require.Zero(t, k.listeners(s, k.name))
	} else {
		k.waitForListeners(t, s, k.name, 1)
	}
	end()
	unlock(t, hold)
	unlock(t, acquired(t, waiter))
}
