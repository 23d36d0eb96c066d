package redistest

import (
	"strconv"
	"testing"
)

// An Option changes how [Start] configures a server.
type Option func(testing.TB, *settings)

// settings is what a server is started with. It does not change afterwards: a
// restart repeats it.
type settings struct {
	args     []string // redis-server arguments, in order; later ones win
	password string
	tls      *certificates // nil: plain TCP

	// hostNetwork wants the server's ports to be the same seen from inside and
	// from outside, as the nodes of a cluster tell each other and their clients.
	hostNetwork bool

	// sentinel makes it a Sentinel, which needs a configuration file that it can write.
	sentinel bool
}

// arguments are the redis-server arguments that both backends need: listen on
// port, find the certificates, if any, in that directory, persist nothing, log
// only what explains a failure.
func (s *settings) arguments(port int, certificates string) []string {
	args := []string{"--port", strconv.Itoa(port)}
	if s.tls != nil {
		args = append([]string{"--port", "0", "--tls-port", strconv.Itoa(port)}, s.tls.args(certificates)...)
	}
	args = append(args, "--save", "", "--appendonly", "no", "--loglevel", "warning")
	return append(args, s.args...)
}

// WithArgs appends arguments of redis-server, such as "--maxmemory", "3mb". They
// come last and therefore win over redistest's own.
func WithArgs(args ...string) Option {
	return func(_ testing.TB, s *settings) { s.args = append(s.args, args...) }
}

// WithPassword demands password of every connection as the default user.
// [Server.Client] and [Server.Do] know it.
func WithPassword(password string) Option {
	return func(_ testing.TB, s *settings) {
		s.password = password
		s.args = append(s.args, "--requirepass", password)
	}
}

// WithAppendOnly writes each command to an append-only file before it is
// answered, so that data outlives [Server.Kill] and [Server.Restart]. Without it
// a restarted server is empty.
func WithAppendOnly() Option {
	return func(_ testing.TB, s *settings) {
		s.args = append(s.args, "--appendonly", "yes", "--appendfsync", "always")
	}
}

// WithTLS accepts only TLS connections, with a certificate for 127.0.0.1 from an
// authority made for this server. [Server.Client] trusts that authority;
// [Server.TLSConfig] hands it to clients of the test's own making.
func WithTLS() Option {
	return func(tb testing.TB, s *settings) {
		tb.Helper()
		s.tls = newCertificates(tb)
	}
}

// asSentinel makes the server a Sentinel that watches nothing yet.
func asSentinel() Option {
	return func(_ testing.TB, s *settings) { s.sentinel = true }
}

// WithHostNetwork lets the server reach others at their [Server.Addr], as a
// replica must. It matters to containers only.
func WithHostNetwork() Option {
	return func(_ testing.TB, s *settings) { s.hostNetwork = true }
}
