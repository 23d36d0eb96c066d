package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// certificates is an authority and one server certificate signed by it, as files for the servers
// and as a pool for its clients.
type certificates struct {
	dir                                     string
	authorityFile, certificateFile, keyFile string // in dir
	pool                                    *x509.CertPool
}

// files returns the files that a server needs.
func (c *certificates) files() []string {
	return []string{c.authorityFile, c.certificateFile, c.keyFile}
}

// args returns the redis-server arguments that present the certificate, with its files in dir.
// Clients need none.
func (c *certificates) args(dir string) []string {
	return []string{
		"--tls-ca-cert-file", filepath.Join(dir, filepath.Base(c.authorityFile)),
		"--tls-cert-file", filepath.Join(dir, filepath.Base(c.certificateFile)),
		"--tls-key-file", filepath.Join(dir, filepath.Base(c.keyFile)),
		"--tls-auth-clients", "no",
		// Several servers use it between each other, too.
		"--tls-replication", "yes",
		"--tls-cluster", "yes",
	}
}

// config returns a client configuration that trusts only this authority. It is a new one each time,
// because the user of a TLS configuration may change it.
func (c *certificates) config() *tls.Config {
	return &tls.Config{RootCAs: c.pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
}

func newCertificates(tb testing.TB) *certificates {
	tb.Helper()
	authority := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "holdfast test authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "127.0.0.1"},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority,
		authorityKey.Public(), authorityKey)
	require.NoError(tb, err)
	serverDER, err := x509.CreateCertificate(rand.Reader, server, authority, serverKey.Public(),
		authorityKey)
	require.NoError(tb, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(serverKey)
	require.NoError(tb, err)
	parsed, err := x509.ParseCertificate(authorityDER)
	require.NoError(tb, err)

	dir := tb.TempDir()
	c := &certificates{
		dir:             dir,
		authorityFile:   filepath.Join(dir, "ca.crt"),
		certificateFile: filepath.Join(dir, "redis.crt"),
		keyFile:         filepath.Join(dir, "redis.key"),
		pool:            x509.NewCertPool(),
	}
	c.pool.AddCert(parsed)
	writePEM(tb, c.authorityFile, "CERTIFICATE", authorityDER)
	writePEM(tb, c.certificateFile, "CERTIFICATE", serverDER)
	writePEM(tb, c.keyFile, "PRIVATE KEY", keyDER)
	return c
}

func writePEM(tb testing.TB, file, kind string, der []byte) {
	tb.Helper()
	block := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	require.NoError(tb, os.WriteFile(file, block, 0o600))
}
