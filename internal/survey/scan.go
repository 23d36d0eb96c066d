package survey

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
)

// Scan finds locks by keys of one sort. Locks have no common prefix, so held locks are hashes like
// others. [Surveyor.Candidates] finds the locks among the hashes.
type Scan struct {
	pattern string // of the keys
	of      string // their type
	prefix  string // the beginning of the keys of waiters; "" for held locks
	braced  bool   // whether to find waiters for locks with a "{" in their names, or for others
}

// Scans returns the scans that find all locks whose names match a glob pattern, "" for all. The
// first scan finds held locks. The others find locks with waiters, some of which are free.
func Scans(pattern string) []Scan {
	pattern = cmp.Or(pattern, "*")
	const queues, waiters = "redisson_lock_queue:", "holdfast_lock_waiters:"
	return []Scan{
		{pattern: pattern, of: "hash"},
		{queues + "{" + pattern + "}", "list", queues, false},
		{queues + pattern, "list", queues, true},
		{waiters + "{" + pattern + "}", "zset", waiters, false},
		{waiters + ":" + pattern, "zset", waiters + ":", true}, // see wire.WaitersKey
	}
}

// OfHolders reports whether the scan finds the hashes of locks, and other hashes.
func (s Scan) OfHolders() bool { return s.prefix == "" }

// Next sends one SCAN to a node, which looks at about count keys. Next returns the names of the
// locks that it found, some of them perhaps twice, and the next cursor; 0 is the end.
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

// lock returns the name of the lock of a key of waiters. ok is false if the scan does not find the
// lock, or another scan does. "n" and "{n}" have the same queue, and lock returns "n" for it.
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

// SameQueue returns the name of the other lock with the same queue; "" if there is none.
func SameQueue(lock string) string {
	if strings.Contains(lock, "{") {
		return ""
	}
	return "{" + lock + "}"
}

// sample is how many fields of a hash must look like fields of a lock. A hash in which only some
// fields look so is not a lock either, and its survey says so.
const sample = 3

// Candidates returns those of the hashes that may be locks. Candidates reads only a few fields of
// each hash, however large it is. Candidates leaves out keys of other types, and keys that this
// user may not read.
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
