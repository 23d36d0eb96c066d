package rediserr_test

import (
	"context"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
	"holdfast/internal/rediserr"
)

// requireError asserts the class and code of an error of the package, and that it has advice.
func requireError(tb testing.TB, err error, class rediserr.Class, code string) rediserr.Error {
	tb.Helper()
	var e *rediserr.Error
	require.ErrorAs(tb, err, &e)
	require.Equal(tb, class, e.Class, "%+v", e)
	require.Equal(tb, code, e.Code, "%+v", e)
	require.NotEmpty(tb, e.Message)
	require.NotEmpty(tb, e.Advice, "%+v", e)
	require.Contains(tb, err.Error(), e.Advice)
	require.Equal(tb, class, rediserr.ClassOf(err))
	return *e
}

// says sets the reply to scripts.
func says(server *fakeredis.Server, reply any) {
	server.Handle("EVALSHA", func([]string) any { return reply })
}

// callScript calls a script.
func callScript(ctx context.Context, c rueidis.Client) error {
	return c.Do(ctx, c.B().Evalsha().Sha1("5e2f0d").Numkeys(0).Build()).Error()
}
