package redissonyaml

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// address is one of a server or Sentinel.
type address struct {
	hostPort           string
	username, password string
	tls                bool
}

// parseAddress reads an address in Redisson's form, scheme://[[user]:password@]host:port. Its
// errors repeat nothing of the text: in an address that is wrong any part may be the password.
func parseAddress(text string) (a address, err error) {
	scheme, rest, found := strings.Cut(text, "://")
	switch {
	case !found:
		return a, errors.New("has no scheme; write redis:// before the address, or rediss:// for TLS")
	case scheme == "redis" || scheme == "valkey":
	case scheme == "rediss" || scheme == "valkeys":
		a.tls = true
	case strings.HasSuffix(scheme, "+uds"):
		return a, errors.New("redissonyaml does not support Unix sockets; use a host and a port, or " +
			"set Redis.DialCtxFn after Load and add this key to Options.Handled")
	default:
		return a, errors.New("has an unknown scheme; write redis, or rediss for TLS")
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		user, password, found := strings.Cut(rest[:i], ":")
		if !found {
			return a, errors.New("has no colon before the password; write user:password@host " +
				"or :password@host")
		}
		a.username, err = url.QueryUnescape(user)
		if err != nil {
			return a, errors.New("the user name is not URL-encoded; encode special characters, " +
				"as in %40 for @")
		}
		a.password, err = url.QueryUnescape(password)
		if err != nil {
			return a, errors.New("the password is not URL-encoded; encode special characters, " +
				"as in %40 for @")
		}
		rest = rest[i+1:]
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil || host == "" {
		return a, errors.New("must end in host:port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return a, errors.New("must have a port between 1 and 65535")
	}
	a.hostPort = net.JoinHostPort(host, port)
	return a, nil
}
