package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/rueidis"

	"holdfast/cmd/holdfast/internal/status"
	"holdfast/internal/docs"
	"holdfast/internal/rediserr"
)

// errSilent reports that the server takes too long.
var errSilent = errors.New("no reply")

// contactError is an error of a first contact. Its text never shows the password, which that of its
// cause may.
type contactError struct {
	text  string
	cause error
}

func (e *contactError) Error() string { return e.text }
func (e *contactError) Unwrap() error { return e.cause }

// Passes reports whether an error of a first contact, of [Dial] or of rueidis, may pass by itself:
// the server is down, hangs, or is not ready.
func Passes(err error) bool {
	var usage *status.Error
	if errors.As(err, &usage) && usage.Status != status.Server || errors.Is(err, rueidis.Nil) {
		return false // a mistake in the command line, or a master that no Sentinel knows
	}
	return rediserr.ClassOf(rediserr.Classify(err)) != rediserr.ClassPermanent
}

// explain returns an error of a first contact in one line: where it happened, and what to do.
func explain(err error, option rueidis.ClientOption) error {
	text := err.Error()
	if rueidis.IsRedisNil(err) {
		text = "no such master"
	}
	if option.Password != "" { // servers quote a command that they do not know
		text = strings.ReplaceAll(text, option.Password, "…")
	}
	text = strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ".")
	return &contactError{fmt.Sprintf("cannot use Redis at %s: %s%s",
		strings.Join(option.InitAddress, ","), text, advise(err, option)), err}
}

const checkServer = "; check that the server is running and that the address is correct"

// advise returns what to do about an error of a first contact, behind a semicolon, or "".
func advise(err error, option rueidis.ClientOption) string {
	var (
		refused     *rueidis.RedisError
		notTLS      tls.RecordHeaderError
		certificate *tls.CertificateVerificationError
		network     *net.OpError
	)
	silent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, errSilent)
	// Which one it is depends on who is quicker.
	closed := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
	switch {
	case option.Sentinel.MasterSet != "" && (rueidis.IsRedisNil(err) ||
		strings.Contains(err.Error(), "No such master")):
		return fmt.Sprintf("; these Sentinels do not know %q, so check --sentinel",
			option.Sentinel.MasterSet)
	case errors.As(err, &refused):
		return adviseRefused(refused, option)
	case errors.As(err, &notTLS):
		return "; this port does not use TLS, so leave out --tls or rediss://, or use the TLS port"
	case errors.As(err, &certificate):
		return "; pass the authority with --cacert, and check that the certificate is for this address"
	case errors.As(err, &network) && network.Op == "dial" && !silent:
		return checkServer
	case option.TLSConfig != nil && silent:
		return "; check that the server is running, that the address is correct, and that this port " +
			"uses TLS"
	case silent:
		return checkServer
	case option.TLSConfig != nil && (closed || strings.Contains(err.Error(), "remote error: tls")):
		return "; if the server requires a certificate, pass --cert and --key; if this port does not " +
			"use TLS, leave out --tls or rediss://"
	case option.TLSConfig == nil && closed:
		return "; if this port uses TLS, add --tls or use rediss://; if the server has no connection " +
			"left, raise its maxclients"
	case option.TLSConfig == nil && strings.Contains(err.Error(), "unknown message type"):
		return "; if this port uses TLS, add --tls or use rediss://"
	}
	return ""
}

// adviseRefused is advise for an error that the server replied.
func adviseRefused(refused *rueidis.RedisError, option rueidis.ClientOption) string {
	var known *rediserr.Error
	errors.As(rediserr.Classify(refused), &known)
	switch known.Code {
	case "WRONGPASS":
		return "; check --user, REDISCLI_AUTH, and --password-file"
	case "NOAUTH":
		return "; put the password into REDISCLI_AUTH or REDIS_URL, or use --password-file"
	case "NOPERM":
		return "; grant this user the permissions in " + docs.Base + "permissions.md"
	}
	if option.Sentinel.MasterSet != "" && known.Code == "UNSUPPORTED" {
		return "; with --sentinel, --redis must have the addresses of Sentinels, but this server is none"
	}
	if len(option.InitAddress) > 1 && strings.Contains(strings.ToUpper(refused.Error()), "CLUSTER") {
		return "; several --redis are nodes of one cluster, but this server is not; use one --redis, " +
			"or holdfast run --quorum for a RedLock"
	}
	return ""
}
