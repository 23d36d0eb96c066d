package redistest

import (
	"strconv"
	"strings"
	"testing"
)

// An Option changes how [Start] configures a server.
type Option func(testing.TB, *settings)

// settings is what a server is started with. It never changes: a restart uses it again.
type settings struct {
	args     []string      // redis-server arguments, in order; later ones win
	password string        // of the default user
	user     string        // the user of [Server.Client]; "": the default user
	secret   string        // the password of user
	tls      *certificates // nil: plain TCP

	// hostNetwork wants the server's ports to be the same from inside and outside, as the nodes of
	// a cluster tell them each other and their clients.
	hostNetwork bool
	// ownNetwork wants a network that the server can be taken off.
	ownNetwork bool

	// hidden has the commands that were renamed away, in upper case.
	hidden map[string]bool

	// sentinel makes it a Sentinel, which needs a configuration file that it can write.
	sentinel bool
	// clusterNode makes it a node of a cluster, which listens on two ports.
	clusterNode bool

	// rewrite changes the scripts that clients send; nil: they are sent as they are.
	rewrite func(source string) string

	// replicas of a master and watchers of a group, in topologies that have them.
	replicas, watchers int
}

// collect returns the settings that opts ask for.
func collect(tb testing.TB, opts []Option) *settings {
	tb.Helper()
	s := &settings{replicas: -1}
	for _, opt := range opts {
		opt(tb, s)
	}
	s.applyProfile(tb)
	return s
}

// with returns opts and more, without changing the array of opts.
func with(opts []Option, more ...Option) []Option {
	return append(opts[:len(opts):len(opts)], more...)
}

// arguments returns the redis-server arguments that both backends need: listen on port, find any
// certificates in that directory, persist nothing, log only what explains a failure.
func (s *settings) arguments(port int, certificates string) []string {
	args := []string{"--port", strconv.Itoa(port)}
	if s.tls != nil {
		args = append([]string{"--port", "0", "--tls-port", strconv.Itoa(port)},
			s.tls.args(certificates)...)
	}
	if s.clusterNode {
		args = append(args, "--cluster-enabled", "yes", "--cluster-announce-ip", host)
	}
	args = append(args, "--save", "", "--appendonly", "no", "--loglevel", "warning")
	return append(args, s.args...)
}

// WithArgs appends arguments of redis-server, such as "--maxmemory", "3mb". They come last and so
// override redistest's own.
func WithArgs(args ...string) Option {
	return func(_ testing.TB, s *settings) { s.args = append(s.args, args...) }
}

// WithoutCommands renames commands away: clients and scripts get the server's own errors for
// commands that it does not know. [Server.Do] and [Server.Call] still have them.
func WithoutCommands(commands ...string) Option {
	return func(_ testing.TB, s *settings) {
		if s.hidden == nil {
			s.hidden = make(map[string]bool)
		}
		for _, command := range commands {
			s.hidden[strings.ToUpper(command)] = true
			s.args = append(s.args, "--rename-command", command, hiddenName(command))
		}
	}
}

// hiddenName returns the name that a command has instead.
func hiddenName(command string) string { return "hidden-" + strings.ToLower(command) }

// WithPassword requires password of every connection as the default user. [Server.Client] and
// [Server.Do] know it, as do replicas with the same option. Sentinels know it, but require none
// themselves.
func WithPassword(password string) Option {
	return func(_ testing.TB, s *settings) {
		s.password = password
		s.args = append(s.args, "--requirepass", password, "--masterauth", password)
	}
}

// WithUser adds a user with the given rules of ACL SETUSER, such as "~*", "&*", "+@all"; without
// rules it may do everything. [Server.Client] connects as that user. [Server.Do] stays the default
// user, who may do everything as well.
func WithUser(name, password string, rules ...string) Option {
	if len(rules) == 0 {
		rules = []string{"~*", "&*", "+@all"}
	}
	return func(_ testing.TB, s *settings) {
		s.user, s.secret = name, password
		s.args = append(append(s.args, "--user", name, "on", ">"+password), rules...)
	}
}

// WithAppendOnly writes each command to an append-only file before the reply, so that data outlives
// [Server.Kill] and [Server.Restart]. Without it a restarted server is empty.
func WithAppendOnly() Option {
	return func(_ testing.TB, s *settings) {
		s.args = append(s.args, "--appendonly", "yes", "--appendfsync", "always")
	}
}

// WithTLS accepts only TLS connections, with a certificate for 127.0.0.1 from an authority made for
// this option: servers started with the same one trust each other, and a client of one trusts all
// of them. [Server.Client] uses it; [Server.TLSConfig] returns it for clients that the test makes.
// The option belongs to the test that uses it first.
func WithTLS() Option {
	var made *certificates
	return func(tb testing.TB, s *settings) {
		tb.Helper()
		if made == nil {
			made = newCertificates(tb)
		}
		s.tls = made
	}
}

// WithReplicas gives each master of [StartCluster] or [StartSentinel] n replicas. The default is
// none in a cluster, and one with Sentinel.
func WithReplicas(n int) Option {
	return func(_ testing.TB, s *settings) { s.replicas = n }
}

// WithWatchers starts n Sentinels in [StartSentinel] instead of one. More than half of them must
// agree that the master is down.
func WithWatchers(n int) Option {
	return func(_ testing.TB, s *settings) { s.watchers = n }
}

// asSentinel makes the server a Sentinel that watches nothing yet, and reaches servers with the
// given settings.
func asSentinel(watched *settings) Option {
	return func(_ testing.TB, s *settings) { s.sentinel, s.tls = true, watched.tls }
}

// AsClusterNode makes the server a node of a cluster that serves no slots yet. WithArgs cannot: the
// port of its bus has to be below those of outgoing connections, one of which may have it.
func AsClusterNode() Option {
	return func(_ testing.TB, s *settings) { s.clusterNode, s.hostNetwork = true, true }
}

// WithHostNetwork lets the server reach others at their [Server.Addr], as a replica must. It
// matters only for containers, which use the network of this machine anyway if the engine allows
// that.
func WithHostNetwork() Option {
	return func(_ testing.TB, s *settings) { s.hostNetwork = true }
}

// WithOwnNetwork makes [Server.Isolate] take the server off its network. It matters only for
// containers, and costs a quarter of a second at the start. Other containers cannot reach the
// server, so it is for single ones: [WithHostNetwork] overrides it.
func WithOwnNetwork() Option {
	return func(_ testing.TB, s *settings) { s.ownNetwork = true }
}
