//go:build redis

package lua_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// The error of a client that cannot be made, and that of a command, are classified the same.
func TestClientThatCannotConnectIsAdvised(t *testing.T) {
	right := redistest.Start(t, redistest.WithPassword("right"))
	stopped, bare := redistest.Start(t), redistest.Start(t)
	tls := redistest.Start(t, redistest.WithTLS())
	stopped.Kill(t)
	another := redistest.Start(t, redistest.WithTLS()).TLSConfig()
	for _, test := range []struct {
		option       rueidis.ClientOption
		change       func(*rueidis.ClientOption)
		class        lua.Class
		code, advice string
	}{
		{right.ClientOption(), func(o *rueidis.ClientOption) { o.Password = "wrong" },
			lua.ClassPermanent, "WRONGPASS", "Password"},
		{right.ClientOption(), func(o *rueidis.ClientOption) { o.Password = "" },
			lua.ClassPermanent, "NOAUTH", "Password"},
		{stopped.ClientOption(), func(*rueidis.ClientOption) {},
			lua.ClassTemporary, "", "is the server up"},
		// A plain server waits for the end of the line, so only the time-out shows what is wrong.
		{bare.ClientOption(), func(o *rueidis.ClientOption) { o.TLSConfig = another },
			lua.ClassUnknown, "", "rueidis.ClientOption.TLSConfig"},
		{tls.ClientOption(), func(o *rueidis.ClientOption) { o.TLSConfig = another },
			lua.ClassPermanent, "", "RootCAs"},
		{tls.ClientOption(), func(o *rueidis.ClientOption) { o.TLSConfig.ServerName = "redis.example" },
			lua.ClassPermanent, "", "ServerName"},
	} {
		test.option.ForceSingleClient = true
		test.change(&test.option)
		c, err := rueidis.NewClient(test.option)
		require.Error(t, err)
		require.NotNil(t, c)
		t.Cleanup(c.Close)
		require.Contains(t, requireError(t, lua.Classify(err), test.class, test.code).Advice, test.advice)
		_, err = lockPlain(t.Context(), c, lease)
		require.Contains(t, requireError(t, err, test.class, test.code).Advice, test.advice)
	}
}

// The alert of a TLS server may arrive, or be lost when the connection is reset. The class depends
// on that, the advice does not.
func TestPlainClientOfATLSServerIsAdvised(t *testing.T) {
	option := redistest.Start(t, redistest.WithTLS()).ClientOption()
	option.TLSConfig = nil
	_, err := rueidis.NewClient(option)
	var e *lua.Error
	require.ErrorAs(t, lua.Classify(err), &e)
	require.Contains(t, e.Advice, "wants TLS")
	require.Contains(t, e.Advice, "rueidis.ClientOption.TLSConfig")
	require.NotEqual(t, lua.ClassTemporary, e.Class)
}
