// Package survey finds the locks of a Redis and reads all keys of a lock, for program holdfast.
// Package survey changes nothing.
package survey

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/eval"
	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// Survey is the content of Redis for a lock of any kind at one moment. If there are very many
// holders or waiters, Survey has only some of them.
type Survey struct {
	Name      string
	Kind      Kind
	Mode      string     // "read" or "write" on a read-write lock, else ""
	Holds     []lua.Hold // by owner
	MoreHolds int        // how many are not in Holds
	// TTL is the rest of the lease: 0 when the lock is free, or [wire.NoExpiry].
	TTL       time.Duration
	Waits     []Wait // the queue of a fair lock, in order, then registered waiters
	MoreWaits int    // how many are not in Waits
	Token     int64  // the last token of a fenced lock; 0 if none
	// Clock is the time of the server, to which all times here refer; zero if the server does not let
	// scripts read the time.
	Clock time.Time
	// Err is why the lock could not be read: an [*rediserr.Error].
	Err error
}

// Kind is the kind of a lock, as far as its keys show.
type Kind string

// The kinds. A plain lock looks the same as a fair lock without waiters.
const (
	KindPlain     Kind = "lock"
	KindFair      Kind = "fair"
	KindFenced    Kind = "fenced"
	KindReadWrite Kind = "read-write"
)

// Wait is an owner that waits for a lock. Redis does not know all waiters. For plain locks, Redis
// knows registered waiters, to whom a release may grant the lock. For read-write locks, Redis knows
// a writer that waits for readers.
type Wait struct {
	Owner string        // "" for readers, whose owners and number are unknown
	Since time.Time     // zero if not known, as in the queue of a fair lock
	Until time.Time     // when the queue drops the owner at the latest; zero if not known
	Lease time.Duration // the requested lease, if the owner is registered
	Mode  string        // "read" or "write" of a read-write lock, else ""
}

// mostSurveyed is how many holders, and how many waiters of each sort, a survey has at most. Ten
// times as many would take a server several milliseconds.
const mostSurveyed = 1000

var script = lua.Script("survey.lua")

// besides has the keys beside a lock that a survey reads.
var besides = []struct {
	name string
	key  func(lock string) string
}{
	{"waiters", wire.WaitersKey}, {"queue", wire.QueueKey}, {"scores", wire.ScoresKey},
	{"budgets", wire.BudgetsKey}, {"token", wire.TokenKey}, {"writer", wire.WriterKey},
	{"reader", wire.ReaderKey},
}

// Surveyor surveys locks. If the ACL forbids keys beside a lock, Surveyor leaves out these keys. It
// is not safe for concurrent use.
type Surveyor struct {
	redis     rueidis.CoreClient
	clustered bool
	forbidden map[string]bool // names of besides that the ACL forbids
}

// NewSurveyor returns a surveyor. clustered says that all keys of a script must share a slot.
func NewSurveyor(c rueidis.CoreClient, clustered bool) *Surveyor {
	return &Surveyor{redis: c, clustered: clustered, forbidden: map[string]bool{}}
}

// Survey surveys locks, in pipelined commands, and changes nothing. Survey reports keys that are
// not locks as free locks without waiters. Keys that may be large must have passed
// [Surveyor.Candidates].
func (sv *Surveyor) Survey(ctx context.Context, locks ...string) []Survey {
	calls := make([]eval.Call, len(locks))
	for i, lock := range locks {
		calls[i] = sv.call(lock, sv.forbidden)
	}
	surveys := make([]Survey, len(locks))
	for i, rp := range script.RunAll(ctx, sv.redis, calls) {
		if rediserr.HasCode(rp.Err, "NOPERM") {
			rp = sv.probe(ctx, locks[i])
		}
		surveys[i] = surveyed(&rp, locks[i])
	}
	return surveys
}

// call returns the call of the script for a lock, without keys beside the lock that the ACL forbids
// or that are in another slot.
func (sv *Surveyor) call(lock string, forbidden map[string]bool) eval.Call {
	call := eval.Call{Keys: []string{lock}, Args: []string{strconv.Itoa(mostSurveyed)}}
	for _, b := range besides {
		key := b.key(lock)
		if !forbidden[b.name] && (!sv.clustered || wire.Slot(key) == wire.Slot(lock)) {
			call.Keys, call.Args = append(call.Keys, key), append(call.Args, b.name)
		}
	}
	return call
}

func (sv *Surveyor) run(ctx context.Context, lock string, forbidden map[string]bool) eval.Reply {
	call := sv.call(lock, forbidden)
	return script.Run(ctx, sv.redis, call.Keys, call.Args...)
}

// probe surveys a lock for which the ACL forbids a key. probe finds out which keys are forbidden,
// and remembers forbidden keys beside the lock, because the names of locks that this user may read
// mostly have a common beginning.
func (sv *Surveyor) probe(ctx context.Context, lock string) eval.Reply {
	all := map[string]bool{}
	for _, b := range besides {
		all[b.name] = true
	}
	rp := sv.run(ctx, lock, all)
	if rp.Err != nil {
		return rp
	}
	for _, b := range besides {
		all[b.name] = false
		if rediserr.HasCode(sv.run(ctx, lock, all).Err, "NOPERM") {
			all[b.name], sv.forbidden[b.name] = true, true
		}
	}
	return sv.run(ctx, lock, all)
}

// surveyed reads the reply of survey.lua.
func surveyed(rp *eval.Reply, lock string) Survey {
	s := Survey{Name: lock, Kind: KindPlain}
	rp.List(14)
	clock, left, mode := rp.Integer(), rp.Integer(), rp.Text()
	fields, holds := rp.Integer(), rp.Texts()
	registrations, registered := rp.Integer(), rp.Texts()
	queue, queued, scores := rp.Integer(), rp.Texts(), rp.Texts()
	token, writer, expiry, reader := rp.Text(), rp.Text(), rp.Integer(), rp.Boolean()
	if rp.Err == nil && (len(holds)%2 != 0 || len(registered)%2 != 0 || len(scores) != 2*len(queued)) {
		rp.Keep(rediserr.Unexpected(errors.New("a field without a value")))
	}
	if rp.Err != nil {
		s.Err = rp.Err
		return s
	}
	if clock >= 0 {
		s.Clock = time.UnixMilli(clock)
	}
	s.Holds = holdsOf(holds)
	if len(s.Holds) > 0 {
		s.Mode, s.TTL = mode, wire.TTL(left)
		if mode != "" {
			fields--
		}
		s.MoreHolds = max(0, int(fields)-len(s.Holds))
	}
	for i, owner := range queued {
		until := cmp.Or(number(scores[2*i+1]), number(scores[2*i]))
		s.Waits = append(s.Waits, Wait{Owner: owner, Until: milli(until)})
	}
	for i := 0; i < len(registered); i += 2 {
		wait, kind, ok := registration(registered[i])
		if !ok {
			continue
		}
		wait.Since = time.UnixMicro(number(registered[i+1]))
		s.Waits = append(s.Waits, wait)
		s.Kind = kind
	}
	s.MoreWaits = max(0, int(queue+registrations)-len(queued)-len(registered)/2)
	if kept, owner, ok := strings.Cut(writer, " "); ok {
		wait := Wait{Owner: strings.TrimSuffix(owner, wire.WriteSuffix), Mode: "write"}
		if clock >= 0 {
			age := max(0, wire.WaiterTTL.Milliseconds()-expiry)
			wait.Since = milli(clock - number(kept) - age)
		}
		s.Waits = append(s.Waits, wait)
	}
	if reader {
		s.Waits = append(s.Waits, Wait{Mode: "read"})
	}
	switch {
	case mode != "" || writer != "" || reader:
		s.Kind = KindReadWrite
	case queue > 0:
		s.Kind = KindFair
	case token != "":
		s.Kind = KindFenced
	}
	if s.Kind == KindFenced {
		s.Token = number(token)
	}
	return s
}

// registration parses a result of [lua.Exclusive.Registration].
func registration(text string) (w Wait, kind Kind, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 3 {
		return Wait{}, "", false // not written by holdfast
	}
	kind = KindPlain
	if parts[2] == "fenced" {
		kind = KindFenced
	}
	return Wait{Owner: parts[0], Lease: wire.TTL(number(parts[1]))}, kind, true
}

// number parses a number that may have a fraction or an exponent, such as a score; 0 for anything
// else.
func number(text string) int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(text, 64)
	return int64(f)
}

// milli returns the time at that many milliseconds; zero for 0.
func milli(milliseconds int64) time.Time {
	if milliseconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milliseconds)
}

// ownerField matches a field of a lock's hash for an owner. Tokens of Redisson are thread ids.
var ownerField = regexp.MustCompile(
	`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:-?\d+(?:` +
		wire.WriteSuffix + `)?$`)

// isForeign reports whether the field cannot be in the hash of a lock.
func isForeign(field string) bool { return field != "mode" && !ownerField.MatchString(field) }

// holdsOf returns the holds in the fields and values of a hash; nil if the hash is not a lock.
func holdsOf(fields []string) (holds []lua.Hold) {
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "mode" {
			continue
		}
		count, err := strconv.Atoi(fields[i+1])
		if err != nil || isForeign(fields[i]) {
			return nil
		}
		owner, write := strings.CutSuffix(fields[i], wire.WriteSuffix)
		holds = append(holds, lua.Hold{Owner: owner, Count: count, Write: write})
	}
	slices.SortFunc(holds, func(a, b lua.Hold) int { return cmp.Compare(a.Owner, b.Owner) })
	return holds
}
