package luashim_test

import (
	"testing"

	"github.com/redis/rueidis"

	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

// eval runs a script as a client does.
func eval(t *testing.T, c rueidis.Client, source string, keys ...string) rueidis.RedisResult {
	t.Helper()
	return c.Do(t.Context(),
		c.B().Eval().Script(source).Numkeys(int64(len(keys))).Key(keys...).Build())
}
