// Package survey finds the locks of a Redis and reads all that Redis has of a lock, for program
// holdfast. It changes nothing.
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

// Survey is what Redis has of a lock of any kind at one moment. Of very many holders or waiters it
// has only some.
type Survey struct {
	Name      string
	Kind      Kind
	Mode      string     // "read" or "write" on a read-write lock, else ""
	Holds     []lua.Hold // by owner
	MoreHolds int        // how many are not in Holds
	// TTL is the rest of the lease: 0 when the lock is free, or [wire.NoExpiry].
	TTL       time.Duration
	Waits     []Wait // those in the queue of a fair lock, in order, then those that registered
	MoreWaits int    // how many are not in Waits
	Token     int64  // the last token that a fenced lock has given; 0 if none
	// Clock is that of the server, to which all times here refer; zero if the server keeps it from
	// scripts.
	Clock time.Time
	// Err is why nothing is known of the lock: an [*rediserr.Error].
	Err error
}

// Kind is the kind of a lock, as far as its keys tell.
type Kind string

// The kinds. A plain lock, and a fair lock that nobody waits for, look the same.
const (
	KindPlain     Kind = "lock"
	KindFair      Kind = "fair"
	KindFenced    Kind = "fenced"
	KindReadWrite Kind = "read-write"
)

// Wait is an owner that waits for a lock. Redis does not know of all: of plain locks it knows those
// of this library that would be granted it, of read-write locks a writer that waits for readers.
type Wait struct {
	Owner string        // "" for readers, of which it is not known who and how many they are
	Since time.Time     // zero if not known, as in the queue of a fair lock
	Until time.Time     // when it is dropped from a queue at the latest; zero if not known
	Lease time.Duration // that it wants, if it is registered
	Mode  string        // "read" or "write" of a read-write lock, else ""
}

// mostSurveyed is how many holders, and how many waiters of each sort, a survey has at most. Ten
// times as many take a server several milliseconds.
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

// Surveyor surveys locks. If the ACL forbids keys beside them, it does without. It is not safe for
// concurrent use.
type Surveyor struct {
	redis     rueidis.CoreClient
	clustered bool
	forbidden map[string]bool // names of besides that the ACL has refused
}

// NewSurveyor returns a surveyor. clustered says that all keys of a script must share a slot.
func NewSurveyor(c rueidis.CoreClient, clustered bool) *Surveyor {
	return &Surveyor{redis: c, clustered: clustered, forbidden: map[string]bool{}}
}

// Survey surveys locks, in pipelined commands. It changes nothing. Keys that are no locks are found
// free and have no waiters. Those that may be large must have passed [Surveyor.Candidates].
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

// call returns the call of the script for a lock, without keys beside the lock that are forbidden
// or in another slot.
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

// probe surveys a lock for which the ACL forbids a key. It finds out which, and remembers those
// beside the lock, because names of locks that this user may see mostly have a common beginning.
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

// registration reads what [lua.Exclusive.Registration] has written.
func registration(text string) (w Wait, kind Kind, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 3 {
		return Wait{}, "", false // not written by this library
	}
	kind = KindPlain
	if parts[2] == "f" {
		kind = KindFenced
	}
	return Wait{Owner: parts[0], Lease: wire.TTL(number(parts[1]))}, kind, true
}

// number reads a number that may have a fraction or an exponent, as a score; 0 if it is none.
func number(text string) int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(text, 64)
	return int64(f)
}

// milli returns the time of that many milliseconds; zero for 0.
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

// isForeign reports whether no lock's hash has the field.
func isForeign(field string) bool { return field != "mode" && !ownerField.MatchString(field) }

// holdsOf returns the holds in the fields and values of a hash; nil if it is not that of a lock.
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
