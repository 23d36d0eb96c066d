package holdfastotel_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	holdfastotel "holdfast/otel"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestErrorTypeIsTheFirstThatSaysWhy(t *testing.T) {
	both := func(a, b error) error { return fmt.Errorf("holdfast: lock %q: %w: %w", "a", a, b) }
	for _, test := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{&rlock.LostError{Reason: rlock.ErrExpired}, "expired"},
		{&rlock.LostError{Reason: rlock.ErrGone}, "gone"},
		{&rlock.LostError{Reason: errors.New("force-unlocked")}, "lost"},
		{both(rlock.ErrNotAcquired, rlock.ErrUpgrade), "upgrade"},
		{both(rlock.ErrNotAcquired, rlock.ErrDeadlock), "deadlock"},
		{both(rlock.ErrNotAcquired, rlock.ErrReleased), "released"},
		{rlock.ErrReentry, "reentry"},
		{&rlock.ReplicationError{}, "not_replicated"},
		{rlock.ErrInvalid, "invalid"},
		{&rlock.HeldError{}, "not_acquired"},
		{both(rlock.ErrNotAcquired, &rlock.ServerError{Code: "OOM"}), "not_acquired"},
		{both(redlock.ErrNoQuorum, &rlock.ServerError{Code: "OOM"}), "no_quorum"},
		{both(redlock.ErrNoQuorum, rlock.ErrClosed), "no_quorum"},
		{rlock.ErrClosed, "closed"},
		{rlock.ErrNotHeld, "not_held"},
		{both(rlock.ErrOutcomeUnknown, &rlock.ServerError{}), "outcome_unknown"},
		{both(errors.New("renew"), &rlock.ServerError{Code: "NOPERM"}), "server_NOPERM"},
		{&rlock.ServerError{Class: rlock.ClassPermanent, Code: "MINE"}, "server"},
		{&rlock.ServerError{Class: rlock.ClassPermanent}, "server"},
		{&rlock.ServerError{Class: rlock.ClassTemporary}, "no_connection"},
		{&rlock.ServerError{Class: rlock.ClassTemporary, Err: timeout("dial")}, "no_connection"},
		{&rlock.ServerError{Class: rlock.ClassTemporary, Err: timeout("read")}, "no_reply"},
		{&rlock.ServerError{Err: context.DeadlineExceeded}, "no_reply"},
		{redlock.ErrNoReply, "no_reply"},
		{&redlock.DelayedError{}, "delayed"},
		{context.Canceled, "canceled"},
		{context.DeadlineExceeded, "deadline_exceeded"},
		{errors.New("order 4711 is broken"), "_OTHER"},
		{&rlock.LostError{Reason: rlock.ErrForced}, "forced"},
		{redlock.ErrNoReply, "no_reply"},
	} {
		require.Equal(t, test.want, holdfastotel.ErrorType(test.err), "%v", test.err)
	}
}

// timeout returns the error of a connection.
func timeout(op string) error { return &net.OpError{Op: op, Err: os.ErrDeadlineExceeded} }

// FuzzErrorTypeIsOfAFixedSet lets a server make up codes.
func FuzzErrorTypeIsOfAFixedSet(f *testing.F) {
	for _, code := range []string{"", "OOM", "oom", "OOM ", "MYMODULE", "server_OOM", "\xff", "_"} {
		f.Add(code, 0)
		f.Add(code, 1)
		f.Add(code, 2)
	}
	known := regexp.MustCompile(`\b(` + code + `)\b`)
	f.Fuzz(func(t *testing.T, code string, class int) {
		got := holdfastotel.ErrorType(&rlock.ServerError{Code: code, Class: rlock.Class(class)})
		switch got {
		case "server", "no_connection", "no_reply":
		default:
			require.Equal(t, "server_"+code, got)
			require.Regexp(t, "^"+known.String()+"$", code)
		}
	})
}

// code has the codes that holdfast has advice for, and those that servers have besides.
var code = strings.ReplaceAll("ASK BUSY CLUSTERDOWN CROSSSLOT DENIED ERR HALFMOVED LOADING "+
	"MASTERDOWN MAXCLIENTS MISCONF MOVED NOAUTH NOCOMMAND NOEPOCH NOINFO NOPERM NOPROTO "+
	"NOREPLICAS NOSCRIPT NOTLOCK OOM READONLY TRYAGAIN UNBLOCKED UNSUPPORTED WRONGPASS WRONGTYPE",
	" ", "|")
