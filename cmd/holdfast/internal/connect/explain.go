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

	"holdfast/lua"
)

// errSilent reports that the server takes too long.
var errSilent = fmt.Errorf("no answer within %v", answerTime)

// explain returns an error of a first contact in one line: where it happened, and what to do. It
// never shows the password.
func explain(err error, option rueidis.ClientOption) error {
	text := err.Error()
	if rueidis.IsRedisNil(err) {
		text = "no such master"
	}
	if option.Password != "" { // servers quote a command that they do not know
		text = strings.ReplaceAll(text, option.Password, "…")
	}
	text = strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ".")
	return fmt.Errorf("cannot use Redis at %s: %s%s", strings.Join(option.InitAddress, ","), text,
		advise(err, option))
}

// advise returns what to do about an error of a first contact, behind a colon, or "".
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
		return fmt.Sprintf(": these Sentinels do not know %q, see --sentinel",
			option.Sentinel.MasterSet)
	case errors.As(err, &refused):
		return adviseRefused(refused, option)
	case errors.As(err, &notTLS):
		return ": the server does not speak TLS here, leave out --tls or rediss://, or use its TLS port"
	case errors.As(err, &certificate):
		return ": see --cacert, and whether the certificate is for this address"
	case errors.As(err, &network) && network.Op == "dial" && !silent:
		return ": is the server up, and the address right?"
	case option.TLSConfig != nil && silent:
		return ": is the server up, and does it speak TLS here?"
	case silent:
		return ": is the server up, and the address right?"
	case option.TLSConfig != nil && (closed || strings.Contains(err.Error(), "remote error: tls")):
		return ": the server may want a certificate, see --cert and --key, or not speak TLS here"
	case option.TLSConfig == nil && (closed || strings.Contains(err.Error(), "unknown message type")):
		return ": if the server wants TLS, use --tls or rediss://"
	}
	return ""
}

// adviseRefused is advise for an error that the server replied.
func adviseRefused(refused *rueidis.RedisError, option rueidis.ClientOption) string {
	var known *lua.Error
	errors.As(lua.Classify(refused), &known)
	switch known.Code {
	case "WRONGPASS":
		return ": see --user, REDISCLI_AUTH and --password-file"
	case "NOAUTH":
		return ": put the password into REDISCLI_AUTH or REDIS_URL, or use --password-file"
	case "NOPERM":
		return ": docs/permissions.md says which rights this user needs"
	}
	if option.Sentinel.MasterSet != "" && known.Code == "UNSUPPORTED" {
		return ": with --sentinel the addresses are those of Sentinels, and this is none"
	}
	if len(option.InitAddress) > 1 && strings.Contains(strings.ToUpper(refused.Error()), "CLUSTER") {
		return ": several addresses are nodes of one cluster, and this is none; for a RedLock use " +
			"run --quorum, and look at one server at a time"
	}
	return ""
}
