//go:build redis

package rlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

func TestNothingIsSubscribedSoonAfterTheLastWaiterLeft(t *testing.T) {
	t.Parallel()
	inLine(t, 3, func(t *testing.T, q *localQueue) {
		for _, leave := range q.leave {
			leave()
		}
		for _, waiter := range q.waiters {
			require.ErrorIs(t, result(t, waiter).Err, context.Canceled)
		}
		q.kind.waitForListeners(t, q.server, q.kind.name, 0)
		require.Zero(t, rlock.Waiting(q.lock))
	})
}
