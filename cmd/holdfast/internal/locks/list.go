package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
	"holdfast/internal/survey"
)

// Query selects locks.
type Query struct {
	Pattern  string        // of names, as for SCAN; "" for all
	Count    int           // keys that one SCAN looks at; 0 for 1000
	Interval time.Duration // between two SCANs
	Most     int           // keys of each node that are looked at, about; 0 for all
}

const defaultCount = 1000

// List finds locks that are held or waited for, in no particular order. It sends SCAN, never KEYS,
// to each master, and yields an error at most once, at the end; until then it yields what it could
// read. It remembers names of locks only, so its memory does not grow with other keys.
func List(ctx context.Context, redis rueidis.Client, q Query) iter.Seq2[Lock, error] {
	return func(yield func(Lock, error) bool) {
		if q.Count <= 0 {
			q.Count = defaultCount
		}
		ls, err := newLister(ctx, redis, q, yield)
		if err == nil {
			err = cmp.Or(ls.run(ctx), ls.refusal)
			ls.close()
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(Lock{}, err)
		}
	}
}

// errStopped is returned when the loop over the locks has ended early.
var errStopped = errors.New("stopped")

// lister is one run of [List].
type lister struct {
	*reader
	query Query
	yield func(Lock, error) bool
	seen  map[string]bool // names of locks that were yielded
	// refusal is the server's first one to read a lock. The others are listed all the same.
	refusal error
}

func newLister(ctx context.Context, redis rueidis.Client, q Query, yield func(Lock, error) bool,
) (*lister, error) {
	r, err := newReader(ctx, redis)
	if err != nil {
		return nil, err
	}
	return &lister{reader: r, query: q, yield: yield, seen: map[string]bool{}}, nil
}

// run scans one node after the other. If one fails it goes on with the next.
func (ls *lister) run(ctx context.Context) error {
	if !ls.transport.Clustered() {
		return ls.scan(ctx, "", ls.redis)
	}
	var failed []error
	nodes := ls.redis.Nodes()
	for _, address := range ls.transport.Masters() {
		node, known := nodes[address]
		err := errors.New("the client has not found this node yet; try again")
		if known {
			err = ls.scan(ctx, address, node)
		}
		if errors.Is(err, errStopped) || ctx.Err() != nil {
			return err
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("node %s: %w", address, err))
		}
	}
	return errors.Join(failed...)
}

// scan lists the locks of one node.
func (ls *lister) scan(ctx context.Context, address string, node rueidis.Client) error {
	for _, scan := range survey.Scans(ls.query.Pattern) {
		cursor := uint64(0)
		for looked := 0; ls.query.Most == 0 || looked < ls.query.Most; looked += ls.query.Count {
			next, err := ls.step(ctx, scan, address, node, cursor)
			if err != nil {
				return err
			}
			cursor = next
			if cursor == 0 {
				break
			}
			if err := pause(ctx, ls.query.Interval); err != nil {
				return err
			}
		}
	}
	return nil
}

// step sends one SCAN, and yields the locks that it finds. It returns the next cursor.
func (ls *lister) step(ctx context.Context, scan survey.Scan, address string, node rueidis.Client,
	cursor uint64,
) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	names, next, err := scan.Next(ctx, node, cursor, ls.query.Count)
	if err != nil {
		return 0, err
	}
	return next, ls.look(ctx, address, names, scan.OfHolders())
}

// look yields the locks among the names that were found by one SCAN.
func (ls *lister) look(ctx context.Context, address string, names []string, hashes bool) error {
	fresh := names[:0]
	for _, name := range names {
		if !ls.seen[name] && (hashes || !ls.seen[survey.SameQueue(name)]) {
			fresh = append(fresh, name)
		}
	}
	if hashes && len(fresh) > 0 {
		var err error
		fresh, err = ls.surveyor.Candidates(ctx, fresh...)
		if err != nil {
			return err
		}
	}
	for _, lock := range ls.read(ctx, fresh) {
		switch {
		case lock.err == nil:
		case !hashes && rediserr.KeyForbidden(lock.err):
			continue // its queue may be read, but not the lock
		case rediserr.HasCode(lock.err, "NOPERM"):
			ls.refusal = cmp.Or(ls.refusal, lock.err)
			continue
		default:
			return lock.err
		}
		if lock.Holding()+lock.Waiting() == 0 || ls.seen[lock.Name] {
			continue
		}
		ls.seen[lock.Name] = true
		lock.Node = address
		if !ls.yield(lock.Lock, nil) {
			return errStopped
		}
	}
	return nil
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
