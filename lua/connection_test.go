//go:build redis

package lua_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// cannotConnect asserts that no client can be made with these options, and that its error and that
// of a command are classified the same.
func cannotConnect(
	t *testing.T,
	option rueidis.ClientOption,
	class lua.Class,
	code, advice string,
) {
	t.Helper()
	option.ForceSingleClient = true
	c, err := rueidis.NewClient(option)
	require.Error(t, err)
	require.NotNil(t, c)
	t.Cleanup(c.Close)
	e := requireError(t, lua.Classify(err), class, code)
	require.Contains(t, e.Advice, advice)

	_, err = lockPlain(t.Context(), c, lock, me, lease)
	e = requireError(t, err, class, code)
	require.Contains(t, e.Advice, advice)
}

func TestWrongPasswordIsRefusedForGood(t *testing.T) {
	option := redistest.Start(t, redistest.WithPassword("right")).ClientOption()
	option.Password = "wrong"
	cannotConnect(t, option, lua.ClassPermanent, "WRONGPASS", "Password")
}

func TestMissingPasswordIsRefusedForGood(t *testing.T) {
	option := redistest.Start(t, redistest.WithPassword("right")).ClientOption()
	option.Password = ""
	cannotConnect(t, option, lua.ClassPermanent, "NOAUTH", "Password")
}

func TestStoppedServerIsRefusedForNow(t *testing.T) {
	s := redistest.Start(t)
	s.Kill(t)
	cannotConnect(t, s.ClientOption(), lua.ClassTemporary, "", "is the server up")
}

func TestServerThatStoppedUnderAClientIsRefusedForNow(t *testing.T) {
	s, c := start(t)
	s.Kill(t)
	require.Eventually(
		t,
		func() bool { // first the broken connection is noticed, then a new one is refused
			_, err := lockPlain(t.Context(), c, lock, me, lease)
			require.Error(t, err)
			return lua.ClassOf(err) == lua.ClassTemporary
		},
		eventually,
		poll,
	)
}

// A plain server waits for the end of the line, so only the time-out shows what is wrong.
func TestTLSClientOfAPlainServerIsAdvised(t *testing.T) {
	option := redistest.Start(t).ClientOption()
	option.TLSConfig = redistest.Start(t, redistest.WithTLS()).TLSConfig()
	cannotConnect(t, option, lua.ClassUnknown, "", "rueidis.ClientOption.TLSConfig")
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

func TestClientThatDoesNotTrustTheServerIsAdvised(t *testing.T) {
	option := redistest.Start(t, redistest.WithTLS()).ClientOption()
	option.TLSConfig = redistest.Start(t, redistest.WithTLS()).TLSConfig()
	cannotConnect(t, option, lua.ClassPermanent, "", "RootCAs")
}

func TestCertificateOfAnotherNameIsAdvised(t *testing.T) {
	option := redistest.Start(t, redistest.WithTLS()).ClientOption()
	option.TLSConfig.ServerName = "redis.example"
	cannotConnect(t, option, lua.ClassPermanent, "", "ServerName")
}

func TestClosedClientIsAnUnknownOutcome(t *testing.T) {
	s := redistest.Start(t)
	c, err := rueidis.NewClient(s.ClientOption())
	require.NoError(t, err)
	c.Close()
	_, err = lockPlain(t.Context(), c, lock, me, lease)
	require.ErrorIs(t, err, rueidis.ErrClosing)
	requireError(t, err, lua.ClassUnknown, "")
	requireFree(t, s, lock)
}

func TestConnectionThatEndsMidCommandIsAnUnknownOutcome(t *testing.T) {
	f, c := startFake(t)
	f.hangsUp()
	for _, o := range operations {
		e := requireError(t, o.run(t.Context(), c), lua.ClassUnknown, "")
		require.Contains(t, e.Advice, "connection was closed")
	}
}
