package fakeredis_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/fakeredis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inBubble runs test in a bubble with a server and its client, which are closed afterwards.
func inBubble(t *testing.T, test func(*testing.T, *fakeredis.Server, rueidis.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := fakeredis.New()
		defer server.Close()
		client, err := rueidis.NewClient(server.ClientOption())
		require.NoError(t, err)
		defer client.Close()
		test(t, server, client)
	})
}

func TestHandlersReplyWithEveryType(t *testing.T) {
	inBubble(t, func(t *testing.T, s *fakeredis.Server, c rueidis.Client) {
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

func TestPausedServerExecutesNothingUntilItResumes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *fakeredis.Server, c rueidis.Client) {
		executed := 0
		s.Handle("EVAL", func([]string) any {
			executed++
			return nil
		})
		s.Pause()
		s.Pause() // a second time changes nothing
		start := time.Now()
		done := make(chan error)
		go func() { done <- c.Do(context.Background(), c.B().Arbitrary("EVAL").Build()).Error() }()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Zero(t, executed)
		s.Resume()
		s.Resume()
		require.True(t, rueidis.IsRedisNil(<-done))
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Equal(t, 1, executed)
	})
}
