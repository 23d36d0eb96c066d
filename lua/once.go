package lua

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/eval"
	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
)

// OnceRecord is what Redis has of a key of package once. The zero value means that Redis has
// nothing.
type OnceRecord struct {
	Token int64  // of the run, and larger than the tokens of all earlier runs
	Run   string // the run that began last, or that stored the result; without spaces
	// Stored reports whether the record has a result.
	Stored bool
	Print  string // the fingerprint of the request; without spaces, and not empty if Stored
	Result string
	// Lost is set only by [BeginOnce] and [StoreOnce]. It reports that the owner does not hold the
	// lock, or that a later run has begun. Redis has not changed anything.
	Lost bool
}

// LookOnce returns the record of the once key with the given lock.
func LookOnce(ctx context.Context, c rueidis.CoreClient, lock string) (OnceRecord, error) {
	// Arbitrary makes a command that rueidis does not repeat by itself.
	get := c.B().Arbitrary("GET").Keys(wire.OnceKey(lock)).Build()
	text, err := c.Do(ctx, get.ToPipe()).ToString()
	if rueidis.IsRedisNil(err) {
		return OnceRecord{}, nil
	}
	if err != nil {
		return OnceRecord{}, rediserr.Classify(err)
	}
	return parseOnce(lock, text)
}

// BeginOnce begins a run for the owner of the lock, and returns the record of the run. The record
// lasts for ttl. If the key has a result already, BeginOnce returns the record of the result and
// changes nothing. The run must be a text that no other run has. A repeated BeginOnce returns the
// same record.
func BeginOnce(ctx context.Context, c rueidis.CoreClient, lock, owner, run string,
	ttl time.Duration,
) (OnceRecord, error) {
	return onceReply(lock, scripts["once_begin.lua"].Run(ctx, c, []string{lock, wire.OnceKey(lock)},
		owner, run, milliseconds(ttl)))
}

// StoreOnce stores the result in r, which lasts for ttl, if the owner still holds the lock and no
// later run has begun. StoreOnce then returns r. If another run has stored a result, StoreOnce
// returns the record of that result. A repeated StoreOnce changes nothing.
func StoreOnce(ctx context.Context, c rueidis.CoreClient, lock, owner string, r OnceRecord,
	ttl time.Duration,
) (OnceRecord, error) {
	text := strings.Join([]string{strconv.FormatInt(r.Token, 10), r.Run, r.Print, r.Result}, " ")
	rp := scripts["once_store.lua"].Run(ctx, c, []string{lock, wire.OnceKey(lock)},
		owner, r.Run, text, milliseconds(ttl))
	if rp.Is(1) {
		return r, nil
	}
	return onceReply(lock, rp)
}

// onceReply reads a record, or a 0.
func onceReply(lock string, rp eval.Reply) (OnceRecord, error) {
	if rp.Is(0) {
		return OnceRecord{Lost: true}, nil
	}
	text := rp.Text()
	if rp.Err != nil {
		return OnceRecord{}, rp.Err
	}
	return parseOnce(lock, text)
}

// parseOnce parses a record.
func parseOnce(lock, text string) (OnceRecord, error) {
	parts := strings.SplitN(text, " ", 4)
	token, err := strconv.ParseInt(parts[0], 10, 64)
	r := OnceRecord{Token: token}
	switch {
	case err == nil && len(parts) == 2:
		r.Run = parts[1]
		return r, nil
	case err == nil && len(parts) == 4:
		r.Run, r.Print, r.Result, r.Stored = parts[1], parts[2], parts[3], true
		return r, nil
	}
	return OnceRecord{}, &rediserr.Error{Class: rediserr.ClassPermanent,
		Message: fmt.Sprintf("the key %q is not a record of package once", wire.OnceKey(lock)),
		Advice:  "something else writes to this key; use another key, or delete this one"}
}
