package rlock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/rlock"
)

// The margin of such a renewal would be that of a lock that was nearly lost.
func TestReplyToARenewalThatComesAfterTheReleaseIsNotTold(t *testing.T) {
	for name, reply := range map[string]any{
		"renewed":  []any{1},
		"rejected": errors.New("NOPERM no permissions to access a key"),
	} {
		t.Run(name, func(t *testing.T) {
			tr, log := new(locktest.Tracer), new(logtest.Lines)
			inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
				option := b.server.ClientOption()
				option.PipelineMultiplex = 3 // connections enough for the release not to wait
				redis, err := rueidis.NewClient(option)
				require.NoError(t, err)
				defer redis.Close()
				c := newClientOn(t, redis, rlock.Options{Tracer: tr, Logger: log.Logger(),
					Anonymous: true})
				defer closeClient(t, c)
				replies := make(chan struct{})
				b.reply("renew.lua", func([]string) any { <-replies; return reply })
				hold := take(t, c.NewLock("lock"), rlock.Watchdog)
				for len(b.called("renew.lua")) == 0 {
					time.Sleep(time.Second)
				}
				_ = hold.Unlock(t.Context()) // it may wait behind the renewal
				tr.Forget()
				close(replies)
				synctest.Wait()
				require.Empty(t, locktest.Heard[rlock.RenewalEnd](tr))
				require.Empty(t, log.With(""))
			})
		})
	}
}
