package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"holdfast/rlock"
)

// Handler is a function that Wrap wraps: one argument, one result.
type Handler[In, Out any] func(ctx context.Context, in In) (Out, error)

// Lock4j has the settings of the annotation @Lock4j of a Java method. With the same settings both
// sides use the same lock.
type Lock4j[In any] struct {
	// Name is the annotation's name. Defaults to that of the method: Method.
	Name string
	// Method is the full name of the Java class, directly followed by that of the method, as in
	// "com.acme.Pointsadd".
	Method string
	// Keys returns the values of the annotation's keys. Defaults to none.
	Keys func(in In) []string
	// AcquireTimeout is for how long the lock is waited for. Defaults to 3 s, as in Lock4j.
	AcquireTimeout time.Duration
	// Expire is the lease. Defaults to rlock.Watchdog, as in Lock4j with Redisson.
	Expire rlock.Lease
}

// LockName returns the name of the lock for an argument: "lock4j:<name>#<key>.<key>".
func (l Lock4j[In]) LockName(in In) string {
	var keys []string
	if l.Keys != nil {
		keys = l.Keys(in)
	}
	return "lock4j:" + cmp.Or(l.Name, l.Method) + "#" + strings.Join(keys, ".")
}

// Wrap returns next under the lock of an annotation. Its error matches rlock.ErrNotRun if the lock
// was not acquired. Calls within a section re-enter, if they have its context.
func Wrap[In, Out any](locks *rlock.Client, l Lock4j[In], next Handler[In, Out]) Handler[In, Out] {
	wait := cmp.Or(l.AcquireTimeout, 3*time.Second)
	lease := cmp.Or(l.Expire, rlock.Watchdog)
	return func(ctx context.Context, in In) (Out, error) {
		return rlock.With(ctx, locks.NewLock(l.LockName(in)), wait, lease,
			func(ctx context.Context) (Out, error) { return next(ctx, in) })
	}
}
