package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
	"holdfast/lua"
)

// Whatever the command that may dial waits for, a renewal does not wait for that command.
func TestRenewalsDoNotWaitForTheDialOfAnotherCommand(t *testing.T) {
	refused := &lua.Error{Class: lua.ClassTemporary, Message: "refused"}
	ignore := func(int, int, error) {}
	renew := func(t *testing.T, c *Calls) {
		t.Helper()
		began := time.Now()
		b := wait.NewBudget(t.Context(), nil, 30*time.Second)
		_, state, err := Detach(c, Renew, b, 0,
			func(int, context.Context) (int, error) { return 1, nil }, ignore)
		require.NoError(t, err)
		require.Equal(t, Executed, state)
		require.Zero(t, time.Since(began))
	}
	for name, kind := range map[string]Kind{
		"for a connection of the pool": Apart,
		"that hangs":                   Acquire,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group := wait.NewGroup()
				defer group.Wait()
				c := NewCalls(group, time.Second, false)
				c.outage.leave(false, false, time.Now(), refused)
				time.Sleep(time.Second)
				dialed := make(chan struct{})
				defer close(dialed)
				go func() {
					b := wait.NewBudget(t.Context(), nil, time.Second)
					_, _, _ = Detach(c, kind, b, 0, func(int, context.Context) (int, error) {
						<-dialed
						return 0, nil
					}, ignore)
				}()
				synctest.Wait()
				renew(t, c)
			})
		})
	}
	t.Run("for a place", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			group := wait.NewGroup()
			defer group.Wait()
			c := NewCalls(group, time.Second, false)
			_, _, replies := hanging(t, c, Acquire, mostAcquiring, time.Second)
			defer close(replies)
			c.outage.leave(false, false, time.Now(), refused)
			time.Sleep(time.Second)
			go func() {
				b := wait.NewBudget(t.Context(), nil, time.Minute)
				_, _, _ = Detach(c, Acquire, b, 0,
					func(int, context.Context) (int, error) { return 0, nil }, ignore)
			}()
			synctest.Wait()
			renew(t, c)
		})
	})
}

// rueidis has several connections. A firewall or a proxy at its limit may let no new one through
// while the others work.
func TestDialThatHangsDoesNotHoldUpCommandsOnOtherConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := wait.NewGroup()
		defer group.Wait()
		c := NewCalls(group, 3*time.Second, false)
		refused := &lua.Error{Class: lua.ClassTemporary, Message: "refused"}
		c.outage.leave(false, false, time.Now(), refused)
		time.Sleep(time.Second)
		ignore := func(int, int, error) {}
		go func() {
			b := wait.NewBudget(t.Context(), nil, time.Minute)
			_, _, _ = Detach(c, Acquire, b, 0, func(_ int, ctx context.Context) (int, error) {
				_ = ctx.Err()
				time.Sleep(5 * time.Second) // rueidis shares this dial between its callers
				return 0, refused
			}, ignore)
		}()
		synctest.Wait()
		began := time.Now()
		b := wait.NewBudget(t.Context(), nil, time.Minute)
		_, state, err := Detach(c, Acquire, b, 0,
			func(int, context.Context) (int, error) { return 1, nil }, ignore)
		require.NoError(t, err)
		require.Equal(t, Executed, state)
		require.LessOrEqual(t, time.Since(began), longestOutage)
	})
}
