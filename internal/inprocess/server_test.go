package inprocess_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/inprocess"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start returns a server and a client in a bubble.
func start(t *testing.T) (*inprocess.Server, func(args ...string) rueidis.RedisResult) {
	t.Helper()
	s, err := inprocess.New()
	require.NoError(t, err)
	t.Cleanup(s.Close)
	client, err := rueidis.NewClient(s.ClientOption())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return s, func(args ...string) rueidis.RedisResult {
		return client.Do(context.Background(), client.B().Arbitrary(args...).Build())
	}
}

// inBubble runs a test with a server and a client in a bubble.
func inBubble(
	t *testing.T,
	test func(t *testing.T, s *inprocess.Server, do func(args ...string) rueidis.RedisResult),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, do := start(t)
		test(t, s, do)
	})
}

func requireInt(t *testing.T, want int64, r rueidis.RedisResult) {
	t.Helper()
	got, err := r.AsInt64()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestKeysExpireInTheTimeOfTheProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, s *inprocess.Server, do func(...string) rueidis.RedisResult) {
		require.NoError(t, do("SET", "key", "1", "PX", "1000").Error())
		time.Sleep(999 * time.Millisecond)
		requireInt(t, 1, do("PTTL", "key"))
		time.Sleep(time.Millisecond)
		requireInt(t, -2, do("PTTL", "key"))

		require.NoError(t, do("SET", "key", "1", "PX", "1000").Error())
		s.Advance(400 * time.Millisecond)
		requireInt(t, 600, do("PTTL", "key"))
		clock, err := do("TIME").AsIntSlice()
		require.NoError(t, err)
		shown := clock[0]*1_000_000 + clock[1]
		require.Equal(t, time.Now().Add(400*time.Millisecond).UnixMilli(), shown/1000)
		clock, err = do("TIME").AsIntSlice()
		require.NoError(t, err)
		require.Greater(t, clock[0]*1_000_000+clock[1], shown, "each command has another time")
	})
}

func TestKeyThatIsKeptDoesNotExpire(t *testing.T) {
	inBubble(t, func(t *testing.T, s *inprocess.Server, do func(...string) rueidis.RedisResult) {
		require.NoError(t, do("SET", "key", "1").Error())
		s.Keep("key", time.Second)
		time.Sleep(time.Hour)
		requireInt(t, 1000, do("PTTL", "key"))
		s.Keep("key", 0)
		time.Sleep(300 * time.Millisecond)
		requireInt(t, 700, do("PTTL", "key"))
	})
}

func TestErrorOfACommandInAScriptBeginsWithItsCode(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *inprocess.Server, do func(...string) rueidis.RedisResult) {
		require.NoError(t, do("SET", "key", "1").Error())
		for script, begins := range map[string]string{
			"return redis.call('HLEN', 'key')":   "WRONGTYPE ",
			"return redis.call('NOSUCH')":        "Unknown Redis command",
			"error('no')":                        "no",
			"return redis.error_reply('MY own')": "MY own",
		} {
			err := do("EVAL", script, "0").Error()
			require.Error(t, err)
			require.Regexp(t, "^"+begins, err.Error(), script)
		}
	})
}
