package lua_test

import (
	"context"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// A client of this library that leaves while others are counted is no Redisson, which doctor would
// warn of.
func TestListenersOnBothKindsAreNotCountedWhileTheyLeave(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := s.Client(t)
	waiter := listen(t, s, "SUBSCRIBE", lua.ClassicChannels(lockChannel)...)
	leaving := leavesBetween{c, func() { endClassic(t, waiter, s, lockChannel) }}
	n, err := lua.Subscribers(t.Context(), &leaving, false, []string{lockChannel})
	require.NoError(t, err)
	require.Zero(t, n)
}

// leavesBetween calls a function after the first command.
type leavesBetween struct {
	rueidis.CoreClient
	leave func()
}

func (l *leavesBetween) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	result := l.CoreClient.Do(ctx, command)
	if l.leave != nil {
		leave := l.leave
		l.leave = nil
		leave()
	}
	return result
}
