package redissonyaml

import (
	"errors"
	"fmt"
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

// parseAddress reads an address in Redisson's form, scheme://[[user]:password@]host:port.
func parseAddress(text string) (a address, err error) {
	scheme, rest, found := strings.Cut(text, "://")
	switch {
	case !found:
		return a, fmt.Errorf("%q has no scheme: write redis://%[1]s, or rediss:// for TLS", text)
	case scheme == "redis" || scheme == "valkey":
	case scheme == "rediss" || scheme == "valkeys":
		a.tls = true
	case strings.HasSuffix(scheme, "+uds"):
		return a, errors.New("a Unix socket is not followed: give a host and a port, or set " +
			"Redis.DialCtxFn yourself")
	default:
		return a, fmt.Errorf("the scheme %q is not known: write redis, or rediss for TLS", scheme)
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		user, password, found := strings.Cut(rest[:i], ":")
		if !found {
			return a, errors.New("write user:password@host, or :password@host")
		}
		if a.username, err = url.QueryUnescape(user); err != nil {
			return a, errors.New("the user name is not URL-encoded")
		}
		if a.password, err = url.QueryUnescape(password); err != nil {
			return a, errors.New("the password is not URL-encoded")
		}
		rest = rest[i+1:]
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil || host == "" {
		return a, fmt.Errorf("%q is not host:port", rest)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return a, fmt.Errorf("%q is not a port", port)
	}
	a.hostPort = net.JoinHostPort(host, port)
	return a, nil
}
