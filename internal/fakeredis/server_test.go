package fakeredis_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/fakeredis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHandlersReplyWithEveryType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakeredis.New()
		defer s.Close()
		c, err := rueidis.NewClient(s.ClientOption())
		require.NoError(t, err)
		defer c.Close()
		var seen []string
		var reply any
		s.Handle("eval", func(args []string) any {
			seen = args
			return reply
		})
		ask := func(value any) rueidis.RedisResult {
			reply = value
			return c.Do(t.Context(), c.B().Arbitrary("EVAL").Args("a b", "").Build())
		}
		text, err := ask("some\r\ntext").ToString()
		require.NoError(t, err)
		require.Equal(t, "some\r\ntext", text)
		require.Equal(t, []string{"EVAL", "a b", ""}, seen)

		number, err := ask(-7).ToInt64()
		require.NoError(t, err)
		require.EqualValues(t, -7, number)

		require.True(t, rueidis.IsRedisNil(ask(nil).Error()))
		status, err := ask(fakeredis.Status("QUEUED")).ToString()
		require.NoError(t, err)
		require.Equal(t, "QUEUED", status)
		require.ErrorContains(t, ask(errors.New("NOSCRIPT none")).Error(), "NOSCRIPT none")

		list, err := ask([]any{1, "x", nil, []any{2}}).ToArray()
		require.NoError(t, err)
		require.Len(t, list, 4)
	})
}
