package multilock_test

import (
	"crypto/sha1"
	"encoding/hex"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
	"holdfast/internal/locktest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// While a call waits for a part, another goroutine extends the parts that it has. A panic of one of
// those is the caller's, and does not end the process.
func TestCallerGetsThePanicOfAPartThatIsExtendedWhileItWaits(t *testing.T) {
	scripts := map[string]string{} // by their hash
	for file, source := range locktest.Scripts() {
		sum := sha1.Sum([]byte(source))
		scripts[hex.EncodeToString(sum[:])] = file
	}
	synctest.Test(t, func(t *testing.T) {
		server := fakeredis.New()
		defer server.Close()
		server.Handle("EVALSHA", func(args []string) any {
			switch script := scripts[args[1]]; {
			case script != "acquire.lua":
				return granting(script, args[3:])
			case args[3] == "z":
				return []any{30_000, "another:1", -1, "1"}
			}
			return nil
		})
		redis, err := rueidis.NewClient(server.ClientOption())
		require.NoError(t, err)
		defer redis.Close()
		c := newClientOn(t, redis, rlock.Options{Server: "fake"})
		defer closeClient(t, c) // before redis is closed
		part := &rude{Locker: c.NewLock("m"), name: "m", in: "Extend"}
		end := locktest.Ends["panic"]
		part.end.Store(&end)
		require.Equal(t, "panic", locktest.EndOf(t, func() {
			_, err := multilock.New(c.NewLock("a"), part, c.NewLock("z")).
				TryLock(t.Context(), 2*time.Second, 3*time.Second)
			t.Error(err)
		}))
	})
}
