package survey

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
)

// Scan finds locks by keys of one sort. Locks have no common prefix, so those that are held are
// hashes like others; [Surveyor.Candidates] finds them.
type Scan struct {
	pattern string // of the keys
	of      string // their type
	prefix  string // what the keys of waiters begin with; "" for locks that are held
	braced  bool   // finds waiters for locks with a "{" in their names, or for the others
}

// Scans returns the scans that find all locks whose names match a glob pattern, "" for all: first
// those that are held, then those that are waited for, of which some are free.
func Scans(pattern string) []Scan {
	pattern = cmp.Or(pattern, "*")
	const queues, waiters = "redisson_lock_queue:", "holdfast_lock_waiters:"
	return []Scan{
		{pattern: pattern, of: "hash"},
		{queues + "{" + pattern + "}", "list", queues, false},
		{queues + pattern, "list", queues, true},
		{waiters + "{" + pattern + "}", "zset", waiters, false},
		{waiters + ":" + pattern, "zset", waiters + ":", true}, // see waitersKey
	}
}

// OfHolders reports whether the scan finds the hashes of locks, and other hashes.
func (s Scan) OfHolders() bool { return s.prefix == "" }

// Next sends one SCAN to a node, which looks at about count keys. It returns the names of locks
// that were found, some of them perhaps twice, and the next cursor; 0 is the end.
func (s Scan) Next(ctx context.Context, node rueidis.CoreClient, cursor uint64, count int,
) (names []string, next uint64, err error) {
	entry, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(s.pattern).Count(int64(count)).
		Type(s.of).Build()).AsScanEntry()
	if err != nil {
		return nil, 0, rediserr.Classify(err)
	}
	if s.OfHolders() {
		return entry.Elements, entry.Cursor, nil
	}
	for _, key := range entry.Elements {
		if name, ok := s.lock(key); ok {
			names = append(names, name)
		}
	}
	return names, entry.Cursor, nil
}

// lock returns the name of the lock that a key of waiters belongs to; ok is false if the scan does
// not find it, or another does. "n" and "{n}" have the same queue; then it is "n".
func (s Scan) lock(key string) (name string, ok bool) {
	name, ok = strings.CutPrefix(key, s.prefix)
	inner, first := strings.CutPrefix(name, "{")
	inner, last := strings.CutSuffix(inner, "}")
	inBraces := first && last && !strings.Contains(inner, "{") // as Prefix does without braces
	if s.braced {
		return name, ok && strings.Contains(name, "{") && (!inBraces || s.of == "zset")
	}
	return inner, ok && inBraces
}

// SameQueue returns the name of the other lock that has the queue of this one; "" if none has.
func SameQueue(lock string) string {
	if strings.Contains(lock, "{") {
		return ""
	}
	return "{" + lock + "}"
}

// sample is how many fields of a hash must look like those of a lock. A hash that has just some of
// those is no lock either, as its survey will tell.
const sample = 3

// Candidates returns those of the hashes that may be locks. However large the others are, it reads
// a few fields only. Keys of other types, and those that this user may not read, are left out.
func (sv *Surveyor) Candidates(ctx context.Context, hashes ...string) (found []string, err error) {
	commands := make(rueidis.Commands, len(hashes))
	for i, key := range hashes {
		commands[i] = sv.redis.B().Hrandfield().Key(key).Count(sample).Build()
	}
	for i, result := range sv.redis.DoMulti(ctx, commands...) {
		fields, err := result.AsStrSlice()
		err = rediserr.Classify(err)
		if err != nil && !rediserr.HasCode(err, "WRONGTYPE") && !rediserr.KeyForbidden(err) {
			return nil, err
		}
		if len(fields) > 0 && !slices.ContainsFunc(fields, isForeign) {
			found = append(found, hashes[i])
		}
	}
	return found, nil
}
