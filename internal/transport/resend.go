package transport

import (
	"fmt"
	"sync/atomic"
	"time"
)

// MostSends limits how often a command is sent because its connection is lost each time. A server
// or a proxy closes connections that were idle, and rueidis, which has up to four by default,
// notices that with the next command on each.
const MostSends = 5

// resend sends a command, and again if it may be and its connection was lost, unless the caller has
// left; a nil left means that it cannot. first says that it is the one that may dial.
func resend[T any](ctx *withoutCancel, kind Kind, first bool, left *atomic.Bool,
	send func() (T, error),
) (T, error) {
	var before error
	for sends := 1; ; sends++ {
		began := time.Now()
		value, err := dialed(ctx.calls.gate(kind), first, ctx,
			func() (T, error) { return retryDial(ctx, send) })
		first = false
		state := StateOf(err)
		if ctx.progress.Load() == phaseSending { // there was no connection
			state = NotSent
		}
		ctx.calls.recordReply(began, state)
		if !Lost(err) || !kind.resendable() || sends == MostSends || left != nil && left.Load() {
			return value, Resent(before, err)
		}
		before = err
		ctx.reset()
	}
}

// Resent returns the error of a command that was sent again: the first time, when before is the
// error, it may have been executed.
func Resent(before, err error) error {
	if before == nil || err == nil {
		return err
	}
	return fmt.Errorf("%w; sent again: %w", before, err)
}
