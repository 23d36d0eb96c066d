package rlock

import (
	"context"
	"time"

	"holdfast/internal/owner"
	"holdfast/lua"
)

// longestKept limits the argument of AtLeast. A longer time is a mistake, such as [Forever].
const longestKept = 100 * 365 * 24 * time.Hour

// AtLeast returns a variant of lock that stays taken for at least d after each acquisition, even if
// you release it earlier. Use AtLeast to keep a short job from running again on a machine whose
// clock is late. If d is 0 or less, AtLeast returns lock itself. AtLeast sends nothing.
//
// Lock and TryLock block like the methods of the given lock, and return the same errors. Unlock
// does not wait for d. If d is not over when the last hold is released, the release sets the TTL of
// the lock to the rest of d. Unlock returns nil, and the hold ends with [ErrReleased]. Until the
// end of d, nobody gets the lock, not even the same owner. Then a waiter gets the lock. After d,
// Unlock is an ordinary release. For each nested hold, d begins with the acquisition of that hold,
// and the latest end counts.
//
// After the release, the lock is not renewed, and [Client.Close] does not free the lock.
// ForceUnlock of the given lock does. If Redis does not confirm the release, the client repeats the
// release as usual, and the lock may stay taken for a moment longer than d.
//
// Only a release keeps the lock taken for d. If the process dies, if the lock is lost, or after
// [Hold.Leave] or [Hold.Detach], the lock is free when its lease ends. If the lock must stay taken
// even then, acquire the lock with a lease of d or longer instead of [Watchdog].
//
// Lock and TryLock return [ErrInvalid] if d is above 100 years, and for a read lock, a MultiLock, a
// RedLock, or a Locker of your own. They also return ErrInvalid if an owner would hold the read
// lock beside the write lock. A MultiLock rejects a part made by AtLeast with ErrInvalid, because
// the MultiLock may have to release the part at once.
func AtLeast(lock Locker, d time.Duration) Locker {
	if d <= 0 {
		return lock
	}
	l, ours := lock.(*Lock)
	if !ours {
		return unkept{lock, invalid("AtLeast cannot keep a %T; use it with a lock of a Client, which "+
			"you acquire before this one", lock)}
	}
	kept := *l
	kept.atLeast, kept.batched = max(d, l.atLeast), false
	switch {
	case l.invalid != nil:
	case l.mode == sharedMode:
		kept.invalid = invalid("AtLeast cannot keep a read lock, which others share; use it with a " +
			"plain lock that you acquire first")
	case d > longestKept:
		kept.invalid = invalid("AtLeast must not keep a lock for more than 100 years (got %v); "+
			"use the time in which no second run may start", d)
	}
	return &kept
}

// unkept is a lock that AtLeast cannot keep.
type unkept struct {
	Locker
	err error
}

func (u unkept) Lock(context.Context, Lease) (_ *Hold, err error) {
	defer wrap(&err, u.Name())
	return nil, u.err
}

func (u unkept) TryLock(ctx context.Context, _ time.Duration, lease Lease) (*Hold, error) {
	return u.Lock(ctx, lease)
}

// keeping says until when a lock stays taken after its release, and in which name in Redis.
//
// The release moves the lock to that name, which nobody has. So a command that is late can neither
// renew the lock nor free it, because such a command has the name of the acquisition.
type keeping struct {
	until time.Time
	owner string
}

// rest returns for how much longer the lock stays taken, 0 or less if the time is over.
func (k keeping) rest() time.Duration { return time.Until(k.until) }

// keepFor makes the release keep the lock taken until d from now, or for longer if another hold of
// the acquisition asked for that. The caller has locked the session.
func (a *acquisition) keepFor(d time.Duration) {
	k := a.kept()
	if until := time.Now().Add(d); until.After(k.until) {
		k.until = until
	}
	if k.owner == "" {
		k.owner = a.client.newName(owner.Kept)
	}
	a.keep.Store(&k)
}

// kept returns what the release has to keep, zero without AtLeast.
func (a *acquisition) kept() (k keeping) {
	if set := a.keep.Load(); set != nil {
		k = *set
	}
	return k
}

// keepsTaken reports whether a release must keep the lock taken now. Time only changes it to false.
func (a *acquisition) keepsTaken() bool {
	k := a.keep.Load()
	return k != nil && k.rest() > 0
}

// keepTaken sends the release of an owner that keeps the lock taken. The command may be repeated.
func (l *Lock) keepTaken(ctx context.Context, holder string, k keeping) (lua.Released, error) {
	l.client.leaveUntil(k.until)
	by := l.held(k.owner).Owner
	rest := (k.rest() + time.Millisecond - 1).Truncate(time.Millisecond) // in whole milliseconds, up
	return lua.Keep(ctx, l.client.redis, lua.Keeping{Held: l.held(holder), By: by,
		For: max(rest, time.Millisecond), Fair: l.queueKey != "", ReadWrite: l.sharesKey,
		Channels: l.client.transport.Channels()})
}

// refuseReading returns an error if the attempt would make an owner read beside a write lock of
// AtLeast. The renewals of the read lock would renew the kept write lock, which is the same key.
func (at *attempt) refuseReading() error {
	if !at.lock.sharesKey {
		return nil
	}
	writer, reader := held(at.session, exclusiveMode), held(at.session, sharedMode)
	reads := reader != nil || at.lock.mode == sharedMode
	if writer != nil && reads && (at.lock.atLeast > 0 || writer.kept().owner != "") {
		return invalid("the owner cannot hold the read lock beside a write lock of AtLeast; " +
			"release one of the two first")
	}
	return nil
}
