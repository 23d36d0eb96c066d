//go:build interop

package redisson_test

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/rlock"
)

// javaActor is a thread of the Java peer.
type javaActor struct {
	peer    *peer
	clients []string
	thread  string
	fence   int64
}

// threads counts the Java threads of this run.
var threads atomic.Int64

// newJavaActor returns a thread of the site's peer that holds no lock.
func newJavaActor(_ testing.TB, s *site) actor { return newThread(s.java, s.clients) }

func newThread(p *peer, clients []string) *javaActor {
	return &javaActor{peer: p, clients: clients, thread: fmt.Sprint("thread-", threads.Add(1))}
}

// do has the thread do something with a lock, and decodes its reply into value.
func (a *javaActor) do(
	op string,
	l target,
	wait time.Duration,
	lease rlock.Lease,
	value any,
) error {
	r, err := a.peer.do(order{
		"thread": a.thread, "op": op, "clients": a.clients, "kind": l.kind, "names": l.names,
		"wait":  wait.Milliseconds(),
		"lease": time.Duration(max(lease, 0)).Milliseconds(), // the peer's watchdog is 0
	})
	switch {
	case err != nil:
		return err
	case r.Class == "java.lang.IllegalMonitorStateException" && op != "unlock":
		return fmt.Errorf("%w: %s", errReenters, r.Message)
	case r.Class == "java.lang.IllegalMonitorStateException":
		return fmt.Errorf("%w: %s", errNotHolder, r.Message)
	case !r.OK:
		return fmt.Errorf("%s %v: %s: %s", op, l, r.Class, r.Message)
	case value == nil:
		return nil
	}
	return json.Unmarshal(r.Value, value)
}

func (a *javaActor) tryLock(l target, wait time.Duration, lease rlock.Lease) error {
	if wait == 0 && (l.kind == multi || l.kind == red) && multiLockWithoutWait.in(beside) {
		wait = -time.Millisecond // the other way not to wait
	}
	if l.kind == fenced {
		var token *int64
		err := a.do("tryLockAndGetToken", l, wait, lease, &token)
		if err == nil && token == nil {
			return errRefused
		}
		if err == nil {
			a.fence = *token
		}
		return err
	}
	var got bool
	err := a.do("tryLock", l, wait, lease, &got)
	if err == nil && !got {
		return errRefused
	}
	return err
}

func (a *javaActor) lock(l target, lease rlock.Lease) error {
	if l.kind == fenced {
		return a.do("lockAndGetToken", l, 0, lease, &a.fence)
	}
	return a.do("lock", l, 0, lease, nil)
}

func (a *javaActor) unlock(l target) error { return a.do("unlock", l, 0, 0, nil) }

func (a *javaActor) forceUnlock(l target) error {
	for _, part := range l.parts() {
		if err := a.do("forceUnlock", part, 0, 0, nil); err != nil {
			return err
		}
	}
	return nil
}

func (a *javaActor) count(l target) (n int, err error) {
	for _, part := range l.parts() {
		var is bool
		if err := a.do("isHeldByCurrentThread", part, 0, 0, &is); err != nil || !is {
			return 0, err
		}
		if err := a.do("holdCount", part, 0, 0, &n); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (a *javaActor) locked(l target) (is bool, err error) {
	for _, part := range l.parts() {
		if err := a.do("isLocked", part, 0, 0, &is); err != nil || is {
			return is, err
		}
	}
	return false, nil
}

func (a *javaActor) ttl(l target) (time.Duration, error) {
	var milliseconds int64
	err := a.do("ttl", l.parts()[0], 0, 0, &milliseconds)
	return time.Duration(milliseconds) * time.Millisecond, err
}

func (a *javaActor) token() int64 { return a.fence }
