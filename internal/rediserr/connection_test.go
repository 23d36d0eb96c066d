//go:build redis

package rediserr_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/rediserr"
	"holdfast/internal/redistest"
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
		class        rediserr.Class
		code, advice string
	}{
		{right.ClientOption(), func(o *rueidis.ClientOption) { o.Password = "wrong" },
			rediserr.ClassPermanent, "WRONGPASS", "Password"},
		{right.ClientOption(), func(o *rueidis.ClientOption) { o.Password = "" },
			rediserr.ClassPermanent, "NOAUTH", "Password"},
		{stopped.ClientOption(), func(*rueidis.ClientOption) {},
			rediserr.ClassTemporary, "", "check that the server is running"},
		// A plain server waits for the end of the line, so only the time-out shows what is wrong.
		{bare.ClientOption(), func(o *rueidis.ClientOption) { o.TLSConfig = another },
			rediserr.ClassUnknown, "", "rueidis.ClientOption.TLSConfig"},
		{tls.ClientOption(), func(o *rueidis.ClientOption) { o.TLSConfig = another },
			rediserr.ClassPermanent, "", "RootCAs"},
		{tls.ClientOption(), func(o *rueidis.ClientOption) { o.TLSConfig.ServerName = "redis.example" },
			rediserr.ClassPermanent, "", "ServerName"},
	} {
		test.option.ForceSingleClient = true
		test.change(&test.option)
		c, err := rueidis.NewClient(test.option)
		require.Error(t, err)
		require.NotNil(t, c)
		t.Cleanup(c.Close)
		for _, err := range []error{err, callScript(t.Context(), c)} {
			e := requireError(t, rediserr.Classify(err), test.class, test.code)
			require.Contains(t, e.Advice, test.advice)
		}
	}
}

// The alert of a TLS server may arrive, or be lost when the connection is reset. The class depends
// on that, the advice does not.
func TestPlainClientOfATLSServerIsAdvised(t *testing.T) {
	option := redistest.Start(t, redistest.WithTLS()).ClientOption()
	option.TLSConfig = nil
	_, err := rueidis.NewClient(option)
	var e *rediserr.Error
	require.ErrorAs(t, rediserr.Classify(err), &e)
	require.Contains(t, e.Advice, "uses TLS")
	require.Contains(t, e.Advice, "rueidis.ClientOption.TLSConfig")
	require.NotEqual(t, rediserr.ClassTemporary, e.Class)
}
