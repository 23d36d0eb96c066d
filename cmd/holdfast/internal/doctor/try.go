package doctor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/cmd/holdfast/internal/status"
	"holdfast/internal/docs"
	"holdfast/internal/wire"
	"holdfast/rlock"
)

const (
	// tryLease is the lease of the locks that are tried: how long they stay if the program dies.
	tryLease = rlock.Lease(5 * time.Second)
	// tryWait is longer than the lease, because a waiter that hears nothing looks when that ends.
	tryWait = 3 * time.Duration(tryLease)
	// waiterTime bounds how long it takes a waiter to register.
	waiterTime = time.Second
)

// kind is a kind of lock that is tried: one client acquires first, and another waits for it.
type kind struct {
	name          string
	rights        rights
	first, second func(c *rlock.Client, name string) *rlock.Lock
	handsOver     bool
}

func newRead(c *rlock.Client, name string) *rlock.Lock { return c.NewReadWriteLock(name).Read() }

func newWrite(c *rlock.Client, name string) *rlock.Lock { return c.NewReadWriteLock(name).Write() }

var kinds = []kind{
	{"lock", plain, (*rlock.Client).NewLock, (*rlock.Client).NewLock, true},
	{"fair", fair, (*rlock.Client).NewFairLock, (*rlock.Client).NewFairLock, false},
	{"fenced", fenced, (*rlock.Client).NewFencedLock, (*rlock.Client).NewFencedLock, true},
	{"read", readWrite, newRead, newWrite, false},
	{"write", readWrite, newWrite, newRead, false},
}

// locks tries each kind of lock, and hand-overs, on a name that nobody uses.
func locks(ctx context.Context, n *node) []Finding {
	if n.lockName() == "" {
		return nil
	}
	kinds := n.kinds()
	found := make([]Finding, len(kinds), len(kinds)+1)
	logs := make([]warnings, len(kinds))
	var tries sync.WaitGroup
	for i, k := range kinds { // at once, because a refused channel costs a lease
		tries.Go(func() {
			err := n.try(ctx, k, &logs[i])
			found[i] = n.judge(ctx, k, err, &logs[i]).named(k.name)
		})
	}
	tries.Wait()
	for i, k := range kinds {
		if k.handsOver && !n.ignores(handOverCheck) {
			return append(found, n.judgeHandOver(ctx, found[i]).named(handOverCheck))
		}
	}
	return found
}

// handOverCheck is the name of the check that goes with locks that hand over.
const handOverCheck = "hand-over"

// kinds returns the kinds to try.
func (n *node) kinds() (chosen []kind) {
	for _, k := range kinds {
		if (n.Kinds == nil || slices.Contains(n.Kinds, k.name)) && !n.ignores(k.name) {
			chosen = append(chosen, k)
		}
	}
	return chosen
}

// try acquires a lock of that kind, renews it, and releases it while another client waits. It
// leaves nothing behind.
func (n *node) try(ctx context.Context, k kind, log *warnings) (err error) {
	name := n.lockName()
	defer n.cleanUp(ctx, name)
	first, err := rlock.New(n.whole, rlock.Options{Logger: slog.New(log)})
	if err != nil {
		return err
	}
	defer closeClient(ctx, first)
	second, err := rlock.New(n.whole, rlock.Options{Logger: slog.New(log)})
	if err != nil {
		return err
	}
	defer closeClient(ctx, second)
	lock := k.first(first, name)
	hold, err := lock.TryLock(ctx, rlock.NoWait, tryLease)
	if err != nil {
		return err
	}
	waited := make(chan error, 1)
	err = n.whileHeld(hold, lock, func() {
		go func() {
			next, err := k.second(second, name).TryLock(ctx, tryWait, tryLease)
			if err == nil {
				err = next.Unlock()
			}
			waited <- err
		}()
	})
	return cmp.Or(err, <-waited)
}

// whileHeld has another client wait for a lock, looks at the lock, extends its lease, and releases
// it.
func (n *node) whileHeld(hold *rlock.Hold, lock *rlock.Lock, wait func()) (err error) {
	defer hold.UnlockTo(&err)
	ctx := hold.Context()
	before := n.beside(ctx, hold.Name())
	wait()
	for began := time.Now(); n.beside(ctx, hold.Name()) <= before &&
		time.Since(began) < waiterTime; {
		time.Sleep(pause)
	}
	_, err = lock.Info(ctx)
	return errors.Join(hold.Extend(ctx, tryLease), err)
}

// closeClient closes a client, also if ctx has ended: the clean-up comes after it.
func closeClient(ctx context.Context, c *rlock.Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	_ = c.Close(ctx) // what it still sends then has a lease
}

// beside counts the keys that there are beside that of a lock: a waiter adds one. Those that this
// user may not ask for do not count.
func (n *node) beside(ctx context.Context, name string) (count int) {
	for _, key := range wire.Related(name) {
		ttl, err := n.do(ctx, "PTTL", key).ToInt64()
		if err == nil && ttl != -2 {
			count++
		}
	}
	return count
}

// cleanUpTime bounds a clean-up.
const cleanUpTime = 3 * time.Second

// cleanUp deletes what there is of a lock, also if ctx has ended. What this user may not delete,
// it could not have made.
func (n *node) cleanUp(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	for _, key := range append(wire.Related(name), name) {
		_ = n.do(ctx, "DEL", key).Error()
	}
}

// judge returns what a try says of a kind of lock.
func (n *node) judge(ctx context.Context, k kind, err error, log *warnings) Finding {
	var refused *rlock.ServerError
	switch {
	case errors.As(err, &refused) && refused.Code == "NOPERM":
		return failure(n.allow(ctx, everyLock, k.rights), "the server rejected this lock (%s)",
			reason(err))
	case errors.As(err, &refused):
		return failure(cmp.Or(status.Text(refused.Advice), "read the error"),
			"the server rejected this lock (%s)", reason(err))
	case err != nil:
		return failure("fix the other lines, and try again", "this lock failed (%v)", err)
	}
	if refusal := log.with("rejected the message", "rejects the channel"); refusal != "" {
		return warning(n.allow(ctx, everyLock, k.rights),
			lateWaiters+" (%s)", refusal)
	}
	return ok("acquired, renewed, waited for, and released")
}

const noHandOvers = "turn hand-overs off in your programs (option HandOver, see " + docs.Base +
	"configuration.md)"

// judgeHandOver returns whether this user may do what hand-overs need. Without it locks work, and
// most of what is refused is not logged.
func (n *node) judgeHandOver(ctx context.Context, lock Finding) Finding {
	if lock.State != OK {
		return unknown(errors.New("locks that hand over have a problem"),
			"the line of lock or fenced first")
	}
	if rules := n.missing(ctx, handOver); len(rules) > 0 {
		return warning("grant "+strings.Join(rules, " ")+" to this user, or "+noHandOvers,
			"holdfast announces each unlock to all waiters, because this user lacks permissions")
	}
	if scriptTime(ctx, n)[0].State != OK {
		return warning(noHandOvers,
			"holdfast announces each unlock to all waiters, because scripts may not call TIME")
	}
	if command := n.keptFromScripts(ctx, handOver.commands); command != "" {
		return warning(noHandOvers,
			"holdfast announces each unlock to all waiters, because scripts may not call %s", command)
	}
	return ok("an unlock hands the lock over to a waiter")
}

// allow returns the advice to give the user those of the rights that it lacks.
func (n *node) allow(ctx context.Context, all ...rights) string {
	if rules := n.missing(ctx, all...); len(rules) > 0 {
		return "grant " + strings.Join(rules, " ") + " to this user"
	}
	return "grant this user the permissions in " + docs.Base + "permissions.md"
}
