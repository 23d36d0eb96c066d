package transport

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/wait"
)

// outage shares the backoff of all callers of a client while the client cannot reach its server.
// Without outage, each caller would dial in each of its tries. With outage, one command dials at a
// time, after a pause, and commands that come meanwhile share the outcome. It is safe for
// concurrent use; its zero value is ready.
type outage struct {
	on     atomic.Bool // guarded by mu for writing
	shared bool        // rueidis shares each dial between the commands that wait for it; constant

	mu      sync.Mutex
	delay   wait.Backoff  // guarded by mu, as all below
	next    time.Time     // when the next command may dial
	dialing bool          // a command dials
	dialed  time.Time     // when that command began to dial
	ended   chan struct{} // closed when that dial has ended
	began   time.Time     // when the latest failed command began
	failure error         // of that command
}

// longestOutage is the longest pause between two dials. It bounds the delay until callers notice
// recovery.
const longestOutage = 100 * time.Millisecond

// enter waits until a command may be sent. If first is true, the command is the one that dials. If
// first is false, the server is reachable as far as is known, or a dial hangs. Commands may share
// that dial, and commands with other connections do not need the dial. If another command began to
// dial meanwhile and failed, enter returns its failure. A nil budget has no end.
//
// Commands that keep or end a hold do not wait, because the command that dials may hang, or may be
// for another connection. The watchdog and releases have their own backoffs.
func (o *outage) enter(kind Kind, b *wait.Budget) (first bool, err error) {
	if kind == Renew || kind == Keep || kind == Release || !o.on.Load() {
		return false, nil
	}
	if b == nil {
		b = wait.NewBudget(context.Background(), nil, wait.Unlimited)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for came := time.Now(); o.on.Load(); {
		pause := time.Until(o.next)
		switch {
		case o.began.After(came): // an earlier failure is old, and the server may be up by now
			return false, o.failure
		case !o.dialing && pause <= 0:
			o.dialing, o.dialed = true, time.Now()
			return true, nil
		case o.dialing && o.shared:
			pause = longestOutage - time.Since(o.dialed)
			if pause <= 0 {
				return false, nil
			}
		case o.dialing:
			pause = wait.Unlimited
		}
		ended, failure := o.ended, o.failure
		o.mu.Unlock()
		inTime := b.Sleep(pause, nil, ended)
		o.mu.Lock()
		if !inTime {
			return false, failure
		}
	}
	return false, nil
}

// leave records the outcome of a command that enter let pass. began is when the command began.
func (o *outage) leave(first, reached bool, began time.Time, err error) {
	if !first && reached != o.on.Load() { // as nearly always
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !first && reached != o.on.Load() {
		return
	}
	o.dialing = o.dialing && !first
	if reached {
		o.on.Store(false)
		o.delay = wait.Backoff{}
	} else {
		if !o.on.Load() {
			o.ended = make(chan struct{})
		}
		o.on.Store(true)
		if !began.Before(o.began) {
			o.began, o.failure = began, err
		}
		o.next = time.Now().Add(o.delay.Within(10*time.Millisecond, longestOutage))
	}
	close(o.ended)
	o.ended = make(chan struct{})
}

// yield replaces leave for the command that dials, if its outcome is not known.
func (o *outage) yield() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dialing = false
	close(o.ended)
	o.ended = make(chan struct{})
}
