package redissonyaml

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
)

// verification says which certificates are trusted, in Redisson's words.
type verification string

const (
	strict verification = "STRICT"  // signed by a trusted authority, for this host
	caOnly verification = "CA_ONLY" // signed by a trusted authority
	none   verification = "NONE"    // any
)

// tlsVersions are the protocols of sslProtocols.
var tlsVersions = map[string]uint16{
	"TLSv1":   tls.VersionTLS10,
	"TLSv1.1": tls.VersionTLS11,
	"TLSv1.2": tls.VersionTLS12,
	"TLSv1.3": tls.VersionTLS13,
}

// config returns the configuration of connections.
func (v verification) config(versions []uint16) *tls.Config {
	c := new(tls.Config)
	if len(versions) > 0 {
		c.MinVersion, c.MaxVersion = slices.Min(versions), slices.Max(versions)
	}
	if v != strict {
		c.InsecureSkipVerify = true
	}
	if v == caOnly {
		c.VerifyConnection = func(state tls.ConnectionState) error {
			intermediates := x509.NewCertPool()
			for _, certificate := range state.PeerCertificates[1:] {
				intermediates.AddCert(certificate)
			}
			_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
				Roots:         c.RootCAs, // the caller may have set it
				Intermediates: intermediates,
			})
			return err
		}
	}
	return c
}
