package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
)

// contact is a first contact with a server.
type contact struct {
	name   string
	env    []string
	args   []string
	status int
	says   string // on standard error
}

// silent is an address that accepts connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

const secret = "s3cret-9f2b"

func TestFirstContactIsOneLine(t *testing.T) {
	t.Parallel()
	plain := redistest.Start(t)
	other := redistest.Start(t)
	guarded := redistest.Start(t, redistest.WithPassword(secret))
	secure := redistest.Start(t, redistest.WithTLS())
	strict := redistest.Start(t, redistest.WithTLS()) // it wants certificates of its clients
	strict.Do(t, "CONFIG", "SET", "tls-auth-clients", "yes")
	group := redistest.StartSentinel(t)
	secureGroup := redistest.StartSentinel(t, redistest.WithTLS(), redistest.WithPassword(secret))
	groupAuthority, _, _ := secureGroup.Nodes[0].TLSFiles()
	socket := filepath.Join(t.TempDir(), "redis.sock")
	redistest.Start(t, redistest.WithArgs("--unixsocket", socket))
	closed := redistest.Start(t)
	closed.Kill(t)
	mute := silent(t)
	authority, certificate, key := secure.TLSFiles()
	strictAuthority, strictCertificate, strictKey := strict.TLSFiles()
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	url := func(address string) string { return "redis://:" + secret + "@" + address + "/0" }
	quoting := faultproxy.Start(t, guarded.Addr())
	quoting.Reply("HELLO", 1000, "ERR what is 'HELLO' 'AUTH' 'default' '"+secret+"'?")
	for _, c := range []contact{
		{"address", nil, []string{"-r", plain.Addr()}, 0, ""},
		{"URL", nil, []string{"-r", "redis://" + plain.Addr() + "/3"}, 0, ""},
		{"REDIS_URL", []string{"REDIS_URL=redis://" + plain.Addr()}, nil, 0, ""},
		{"path of a socket", nil, []string{"-r", socket}, 0, ""},
		{"URL of a socket", nil, []string{"-r", "unix://" + socket + "?db=2"}, 0, ""},
		{"Sentinel", nil, []string{"-r", group.Watcher.Addr(), "--sentinel", "group"}, 0, ""},
		{"Sentinel by URL", []string{"REDIS_URL=redis://" + group.Watcher.Addr() + "?master_set=group"},
			nil, 0, ""},
		{"Sentinel with TLS and a password", []string{"REDISCLI_AUTH=" + secret},
			[]string{"-r", secureGroup.Watcher.Addr(), "--sentinel", "group", "--tls", "--cacert",
				groupAuthority}, 0, ""},
		{"TLS", nil, []string{"-r", secure.Addr(), "--tls", "--cacert", authority}, 0, ""},
		{"rediss", nil, []string{"-r", "rediss://" + secure.Addr(), "--cacert", authority}, 0, ""},
		{"insecure", nil, []string{"-r", "rediss://" + secure.Addr(), "--insecure"}, 0, ""},
		{"client certificate", nil, []string{"-r", strict.Addr(), "--tls", "--cacert", strictAuthority,
			"--cert", strictCertificate, "--key", strictKey}, 0, ""},
		{"password of the environment", []string{"REDISCLI_AUTH=" + secret},
			[]string{"-r", guarded.Addr()}, 0, ""},
		{"password of REDIS_URL", []string{"REDIS_URL=" + url(guarded.Addr())}, nil, 0, ""},
		{"password of a file", []string{"REDISCLI_AUTH=other"}, []string{"-r", guarded.Addr(),
			"--password-file", file("good", secret+"\n")}, 0, ""},
		{"user", []string{"REDISCLI_AUTH=" + secret}, []string{"-r", guarded.Addr(), "--user", "default"},
			0, ""},

		{"refused", nil, []string{"-r", closed.Addr()}, 74, "refused; check that the server is running"},
		{"no host", nil, []string{"-r", "no-such-host.invalid:6379"}, 74, "no-such-host.invalid"},
		{"hangs", nil, []string{"-r", mute}, 74, "no reply within 2s; check that the server is running"},
		{"TLS to a plain port", nil, []string{"-r", plain.Addr(), "--tls"}, 74, "uses TLS"},
		{"plain to a TLS port", nil, []string{"-r", secure.Addr()}, 74, "add --tls"},
		{"unknown authority", nil, []string{"-r", secure.Addr(), "--tls"}, 74, "with --cacert"},
		{"certificate wanted", nil, []string{"-r", strict.Addr(), "--tls", "--cacert", strictAuthority},
			74, "pass --cert"},
		{"no password", nil, []string{"-r", guarded.Addr()}, 74, "into REDISCLI_AUTH"},
		{"wrong password", []string{"REDISCLI_AUTH=" + secret + "x"}, []string{"-r", guarded.Addr()}, 74,
			"disabled; check --user"},
		{"wrong user", []string{"REDISCLI_AUTH=" + secret}, []string{"-r", guarded.Addr(), "--user", "x"},
			74, "check --user"},
		{"password in the reply", []string{"REDISCLI_AUTH=" + secret}, []string{"-r", quoting.Addr()}, 74,
			"'default' '…'?"},
		{"unknown master", nil, []string{"-r", group.Watcher.Addr(), "--sentinel", "nobody"}, 74,
			`do not know "nobody"`},
		{"no Sentinel", nil, []string{"-r", plain.Addr(), "--sentinel", "m"}, 74, "this server is none"},
		{"no cluster", nil, []string{"-r", plain.Addr(), "-r", other.Addr()}, 74,
			"nodes of one cluster, but this server is not; use one --redis"},
		{"no socket", nil, []string{"-r", socket + "x"}, 74, "no such file"},

		{"password in argv", nil, []string{"-r", url(guarded.Addr())}, 64, "can read the command line"},
		{"two ports", nil, []string{"-r", "localhost:1:2"}, 64, "--redis: cannot read the address"},
		{"user without a URL", nil, []string{"-r", secret + "@" + plain.Addr()}, 64,
			"--redis: cannot read the address; use host, host:port"},
		{"bad REDIS_URL", []string{"REDIS_URL=redis://:" + secret + "@host:bad"}, nil, 64,
			"REDIS_URL: cannot read the URL"},
		{"no file", nil, []string{"--password-file", "/no/such"}, 64, "--password-file: "},
		{"empty file", nil, []string{"--password-file", file("empty", "\n")}, 64, "is empty"},
		{"CA without TLS", nil, []string{"--cacert", authority}, 64, "work only with TLS"},
		{"no CA", nil, []string{"--tls", "--cacert", key}, 64, "contains no certificate"},
		{"certificate without a key", nil, []string{"--tls", "--cert", certificate}, 64, "pass both"},
		{"key of another", nil, []string{"--tls", "--cert", certificate, "--key", authority}, 64,
			"--cert and --key: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := runWith(t, c.env, append([]string{"ls", "--json"}, c.args...)...)
			require.NotContains(t, o.stdout+o.stderr, secret)
			require.Equal(t, c.status, o.status, o.stderr)
			require.Empty(t, o.stdout)
			if c.status == 0 {
				require.Empty(t, o.stderr)
				return
			}
			require.Contains(t, o.stderr, c.says)
			require.Equal(t, 1, strings.Count(o.stderr, "\n"), o.stderr)
		})
	}
}
