package lua

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

	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
)

// Survey is what Redis has of a lock of any kind at one moment. Of very many holders or waiters it
// has only some.
type Survey struct {
	Name      string
	Kind      Kind
	Mode      string // "read" or "write" on a read-write lock, else ""
	Holds     []Hold // by owner
	MoreHolds int    // how many are not in Holds
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
	redis     Redis
	clustered bool
	forbidden map[string]bool // names of besides that the ACL has refused
}

// NewSurveyor returns a surveyor. clustered says that all keys of a script must share a slot.
func NewSurveyor(c Redis, clustered bool) *Surveyor {
	return &Surveyor{redis: c, clustered: clustered, forbidden: map[string]bool{}}
}

// Survey surveys locks, in pipelined commands. It changes nothing. Keys that are no locks are found
// free and have no waiters. Those that may be large must have passed [Surveyor.Candidates].
func (sv *Surveyor) Survey(ctx context.Context, locks ...string) []Survey {
	surveys := make([]Survey, len(locks))
	script := scripts["survey.lua"]
	commands := make(rueidis.Commands, len(locks))
	for i, lock := range locks {
		keys, args := sv.arguments(lock, sv.forbidden)
		commands[i] = sv.redis.B().Evalsha().Sha1(script.sha1).Numkeys(int64(len(keys))).
			Key(keys...).Arg(args...).Build()
	}
	for i, result := range sv.redis.DoMulti(ctx, commands...) {
		message, err := result.ToMessage()
		rp := reply{message: message, err: rediserr.Classify(err)}
		if refusal, ok := rueidis.IsRedisErr(err); ok && refusal.IsNoScript() {
			rp = sv.run(ctx, locks[i], sv.forbidden)
		}
		if rediserr.HasCode(rp.err, "NOPERM") {
			rp = sv.probe(ctx, locks[i])
		}
		surveys[i] = rp.survey(locks[i])
	}
	return surveys
}

// arguments returns the keys and arguments of the script, without keys beside the lock that are
// forbidden or in another slot.
func (sv *Surveyor) arguments(lock string, forbidden map[string]bool) (keys, args []string) {
	keys, args = []string{lock}, []string{strconv.Itoa(mostSurveyed)}
	for _, b := range besides {
		key := b.key(lock)
		if !forbidden[b.name] && (!sv.clustered || wire.Slot(key) == wire.Slot(lock)) {
			keys, args = append(keys, key), append(args, b.name)
		}
	}
	return keys, args
}

func (sv *Surveyor) run(ctx context.Context, lock string, forbidden map[string]bool) reply {
	keys, args := sv.arguments(lock, forbidden)
	return scripts["survey.lua"].run(ctx, sv.redis, keys, args...)
}

// probe surveys a lock for which the ACL forbids a key. It finds out which, and remembers those
// beside the lock, because names of locks that this user may see mostly have a common beginning.
func (sv *Surveyor) probe(ctx context.Context, lock string) reply {
	all := map[string]bool{}
	for _, b := range besides {
		all[b.name] = true
	}
	rp := sv.run(ctx, lock, all)
	if rp.err != nil {
		return rp
	}
	for _, b := range besides {
		if all[b.name] = false; rediserr.HasCode(sv.run(ctx, lock, all).err, "NOPERM") {
			all[b.name], sv.forbidden[b.name] = true, true
		}
	}
	return sv.run(ctx, lock, all)
}

// survey reads the reply of survey.lua.
func (rp *reply) survey(lock string) Survey {
	s := Survey{Name: lock, Kind: KindPlain}
	rp.list(14)
	clock, left, mode := rp.integer(), rp.integer(), rp.text()
	fields, holds := rp.integer(), rp.texts()
	registrations, registered := rp.integer(), rp.texts()
	queue, queued, scores := rp.integer(), rp.texts(), rp.texts()
	token, writer, expiry, reader := rp.text(), rp.text(), rp.integer(), rp.boolean()
	if rp.err == nil && (len(holds)%2 != 0 || len(registered)%2 != 0 || len(scores) != 2*len(queued)) {
		rp.keep(rediserr.Unexpected(errors.New("a field without a value")))
	}
	if rp.err != nil {
		s.Err = rp.err
		return s
	}
	if clock >= 0 {
		s.Clock = time.UnixMilli(clock)
	}
	if s.Holds = holdsOf(holds); len(s.Holds) > 0 {
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

// registration reads what [Exclusive.Registration] has written.
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
func holdsOf(fields []string) (holds []Hold) {
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "mode" {
			continue
		}
		count, err := strconv.Atoi(fields[i+1])
		if err != nil || isForeign(fields[i]) {
			return nil
		}
		owner, write := strings.CutSuffix(fields[i], wire.WriteSuffix)
		holds = append(holds, Hold{Owner: owner, Count: count, Write: write})
	}
	slices.SortFunc(holds, func(a, b Hold) int { return cmp.Compare(a.Owner, b.Owner) })
	return holds
}
