package redissonyaml_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerificationModesTrustWhatRedissonTrusts(t *testing.T) {
	// Its certificate is for example.com, and no known authority has signed it.
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse it are no news
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := x509.NewCertPool()
	authority.AddCert(server.Certificate())

	for _, c := range []struct {
		mode          string
		known, itself bool // the authority is trusted; the server is called by its name
		want          bool
	}{
		{mode: "", known: true, itself: true, want: true},
		{mode: "sslVerificationMode: STRICT", known: true, itself: true, want: true},
		{mode: "sslVerificationMode: STRICT", known: true},
		{mode: "sslVerificationMode: STRICT", itself: true},
		{mode: "sslVerificationMode: CA_ONLY", known: true, want: true},
		{mode: "sslVerificationMode: CA_ONLY", itself: true},
		{mode: "sslVerificationMode: NONE", want: true},
		{mode: "sslEnableEndpointIdentification: true", known: true},
		{mode: "sslEnableEndpointIdentification: false", want: true},
	} {
		config := load(t, "singleServerConfig:\n  address: rediss://a:1\n  "+c.mode).Redis.TLSConfig
		if c.known {
			config.RootCAs = authority
		}
		config.ServerName = "other.example.org"
		if c.itself {
			config.ServerName = "example.com"
		}
		conn, err := tls.Dial("tcp", server.Listener.Addr().String(), config)
		if c.want {
			require.NoError(t, err, "%+v", c)
			require.NoError(t, conn.Close())
		} else {
			require.Error(t, err, "%+v", c)
		}
	}
}

func TestSchemeUserAndTLSVersionsAreFollowed(t *testing.T) {
	config := load(t, `
singleServerConfig: {address: "valkeys://user:p%40ss@a:1"}
sslProtocols: [TLSv1.3, TLSv1.2]
`)
	require.Equal(t, []string{"a:1"}, config.Redis.InitAddress)
	require.Equal(t, "user", config.Redis.Username)
	require.Equal(t, "p@ss", config.Redis.Password)
	require.EqualValues(t, tls.VersionTLS12, config.Redis.TLSConfig.MinVersion)
	require.EqualValues(t, tls.VersionTLS13, config.Redis.TLSConfig.MaxVersion)
}
