package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast/cmd/holdfast/internal/child"
	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/status"
	"holdfast/cmd/holdfast/internal/textfile"
	"holdfast/internal/printable"
	"holdfast/internal/wait"
	"holdfast/rlock"
)

// HoldOptions says which lock to hold, and who is to be told about it.
type HoldOptions struct {
	Options           // without Args, Wait, KillAfter, Ignore and Conflict
	ReadyFile  string // exists while the lock is held; "" for none
	HTTP       string // the address that readiness is served at; "" for none
	OnAcquired []string
	OnLost     []string
	ExitOnLoss bool // do not campaign again
}

// events are the values of a hook's HOLDFAST_EVENT.
const (
	eventAcquired = "acquired"
	eventLost     = "lost"
	eventReleased = "released" // before the release
)

// Hold holds the lock, as far as it gets it, until it receives SIGINT, SIGTERM or SIGHUP. After a
// loss it campaigns again, unless ExitOnLoss is set. The error has the exit status.
func Hold(o HoldOptions) error { return o.report(o.hold()) }

func (o HoldOptions) hold() error {
	if err := cmp.Or(o.checkLock(), o.checkReadyFile()); err != nil {
		return status.New(status.Usage, err)
	}
	s := &sidecar{HoldOptions: o}
	if o.HTTP != "" {
		listener, err := net.Listen("tcp", o.HTTP)
		if err != nil {
			return status.New(status.Usage, fmt.Errorf("--http: %w", err))
		}
		defer s.serve(listener)()
		o.note("lock %q: readiness at http://%v/readyz", o.Name, listener.Addr())
	}
	if o.ReadyFile != "" {
		_ = os.Remove(o.ReadyFile) // see checkReadyFile
	}
	if o.MetricsFile != "" {
		s.metrics = textfile.New(o.MetricsFile, o.Name, func(err error) {
			o.warn("cannot write --metrics-file: %v; check the folder and its permissions", err)
		})
		defer s.metrics.Close()
	}
	surviveClosedOutput()
	defer child.ReapOrphans()()
	var end func()
	s.ended, s.hurried, end = untilSignals()
	defer end()
	return s.campaign()
}

// checkReadyFile returns an error if something other than a file has the path, because hold removes
// what a process left there that was killed with its guard.
func (o HoldOptions) checkReadyFile() error {
	if info, err := os.Lstat(o.ReadyFile); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("--ready-file: %s is not a file; choose a path at which nothing else is",
			printable.Short(o.ReadyFile))
	}
	return nil
}

// untilSignals returns a context that ends with the first signal that asks this process to end, and
// one that ends with the second.
func untilSignals() (ended, hurried context.Context, stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ended, end := context.WithCancel(context.Background())
	hurried, hurry := context.WithCancel(context.Background())
	go func() {
		<-signals
		end()
		<-signals
		hurry()
	}()
	return ended, hurried, func() { signal.Stop(signals) }
}

// sidecar is a running "holdfast hold".
type sidecar struct {
	HoldOptions
	ended, hurried context.Context //nolint:containedctx // of the process
	state          state
}

// longestWait is how long a sidecar tries to connect: until somebody ends it.
const longestWait = 100 * 365 * 24 * time.Hour

// campaign acquires the lock again and again.
func (s *sidecar) campaign() error {
	l, err := s.open(s.ended, time.Now().Add(longestWait))
	if err != nil {
		if s.ended.Err() != nil {
			return nil
		}
		s.metrics.Unreachable(s.traced(), err, 0)
		return err
	}
	defer l.close()
	for {
		hold, err := s.acquire(l)
		switch {
		case s.ended.Err() != nil && err != nil:
			return nil
		case err != nil:
			return s.acquireError(err, l)
		}
		lost, err := s.holding(l, hold)
		switch {
		case err != nil:
			return err
		case lost && s.ExitOnLoss:
			return status.New(status.Lost, nil)
		case s.ended.Err() != nil:
			return nil
		}
	}
}

// acquire waits for the lock. It outlasts outages of the server.
func (s *sidecar) acquire(l *lock) (hold *rlock.Hold, err error) {
	var backoff wait.Backoff
	for {
		hold, err = s.await(s.ended, l, time.Time{})
		if err == nil {
			hold, err = s.extend(s.ended, hold)
		}
		passes := err != nil && !errors.Is(err, rlock.ErrInvalid) && connect.Passes(err)
		if !passes || s.ended.Err() != nil {
			return hold, err
		}
		pause := backoff.Next()
		if backoff.Failures == 1 {
			s.note("%v; holdfast tries again", err)
		}
		select {
		case <-time.After(pause):
		case <-s.ended.Done():
			return nil, err
		}
	}
}

// holding does what there is to do while the lock is held. It reports whether the lock was lost
// meanwhile. It returns an error if the process must end.
func (s *sidecar) holding(l *lock, hold *rlock.Hold) (lost bool, err error) {
	l.noteHold(s.Lease)
	s.metrics.Acquired()
	s.note("lock %q: held as %s", s.Name, hold.Owner())
	guard, err := s.publish(hold)
	if err != nil {
		return false, errors.Join(status.New(status.Usage, err), hold.Unlock())
	}
	hook := s.start(eventAcquired, s.OnAcquired, hold, hold.Deadline())
	loss := s.watch(hold, guard, hook)
	s.withdraw(guard)
	if loss != nil {
		s.warn("%v", loss)
	}
	hook.end(s.hurried)
	if loss != nil {
		_ = hold.Unlock() // it may have been renewed after all
		s.start(eventLost, s.OnLost, hold, time.Now().Add(s.Lease)).wait(s.hurried)
		return true, nil //nolint:nilerr // it was reported
	}
	s.start(eventReleased, s.OnLost, hold, time.Now().Add(s.Lease)).wait(s.hurried)
	if err := s.release(hold); err != nil {
		return true, status.New(status.Lost, err)
	}
	s.note("lock %q: released", s.Name)
	return false, nil
}

// watch waits until the lock is lost, and returns why, or until this process is to end.
func (s *sidecar) watch(hold *rlock.Hold, guard *child.FileGuard, hook *hook) error {
	tick := time.NewTicker(min(max(s.Lease/30, 10*time.Millisecond), time.Second))
	defer tick.Stop()
	var removed <-chan struct{}
	if guard != nil {
		removed = guard.Removed()
	}
	deadline := hold.Deadline()
	for {
		select {
		case <-removed:
			return s.unrenewed(hold)
		case <-hook.expires():
			return s.unrenewed(hold)
		case <-tick.C:
			if moved := hold.Deadline(); moved != deadline {
				deadline = moved
				if guard != nil {
					guard.Until(deadline)
				}
				hook.until(deadline)
			}
		case <-hold.Done():
			return hold.Err()
		case <-s.ended.Done():
			return nil
		}
	}
}

// unrenewed returns the error of a lock whose guard has acted, because its deadline came near. It
// is given up: whoever relied on it was told so.
func (s *sidecar) unrenewed(hold *rlock.Hold) error {
	if err := hold.Err(); err != nil {
		return err
	}
	return fmt.Errorf("lock %q: given up, because it was not renewed, and may be lost in %v", s.Name,
		time.Until(hold.Deadline()).Round(100*time.Millisecond))
}

// publish makes the lock known as held.
func (s *sidecar) publish(hold *rlock.Hold) (guard *child.FileGuard, err error) {
	s.state.set(hold)
	if s.ReadyFile == "" {
		return nil, nil
	}
	guard, err = child.GuardFile(s.ReadyFile, s.reserve())
	if err != nil {
		return nil, fmt.Errorf("--ready-file: cannot start the guard: %w", err)
	}
	guard.Until(hold.Deadline())
	if err := s.writeReadyFile(); err != nil {
		guard.Close()
		return nil, fmt.Errorf("--ready-file: %w", err)
	}
	return guard, nil
}

// writeReadyFile makes the file appear with its whole content.
func (s *sidecar) writeReadyFile() error {
	unfinished := s.ReadyFile + ".new" // the same in each run, so that a killed one leaves only one
	err := os.WriteFile(unfinished, s.state.json(s.Name), 0o644)
	if err == nil {
		err = os.Rename(unfinished, s.ReadyFile)
	}
	if err != nil {
		_ = os.Remove(unfinished)
	}
	return err
}

// withdraw makes the lock known as not held.
func (s *sidecar) withdraw(guard *child.FileGuard) {
	s.state.set(nil)
	if guard != nil {
		guard.Close()
	}
}

// hook is a command that is told about the lock. A nil hook has nothing to run.
type hook struct {
	Options
	event   string
	child   *child.Child
	ending  atomic.Bool   // by end
	expired chan struct{} // closed when it was ended because of its deadline
	done    chan struct{} // closed when it has ended and was reported
}

// start starts a hook. It must have ended by the deadline.
func (s *sidecar) start(event string, args []string, hold *rlock.Hold, deadline time.Time) *hook {
	if len(args) == 0 {
		return nil
	}
	ch, err := child.Start(child.Command{Args: args, Deadline: deadline, KillAfter: s.killAfter(),
		Reserve: s.reserve(), Env: append(environment(s.Options, hold), eventVariable+"="+event)})
	if err != nil {
		s.warn("lock %q: cannot start the hook for the event %s: %v", s.Name, event, err)
		return nil
	}
	h := &hook{Options: s.Options, event: event, child: ch,
		expired: make(chan struct{}), done: make(chan struct{})}
	go h.follow()
	return h
}

// follow reports how the hook ends.
func (h *hook) follow() {
	defer close(h.done)
	s, expired := supervision{Options: h.Options, stopped: true}, false
	hear := func(r child.Report) {
		s.report(r.Survivors)
		if due := r.Event == child.Terminated || r.Event == child.Killed; due && !expired {
			expired = true
			close(h.expired)
		}
	}
	for ended := false; !ended; {
		select {
		case r := <-h.child.Reports():
			hear(r)
		case <-h.child.Done():
			ended = true
		}
	}
	for len(h.child.Reports()) > 0 {
		hear(<-h.child.Reports())
	}
	code := h.child.Status()
	switch {
	case expired && h.event != eventAcquired:
		h.warn("lock %q: the hook for the event %s was ended, because it ran for longer than --lease",
			h.Name, h.event)
	case code != 0 && !expired && !h.ending.Load():
		h.warn("lock %q: the hook for the event %s ended with status %d", h.Name, h.event, code)
	}
}

// expires returns a channel that is closed when the hook was ended because of its deadline.
func (h *hook) expires() <-chan struct{} {
	if h == nil {
		return nil
	}
	return h.expired
}

// until moves the deadline of the hook.
func (h *hook) until(deadline time.Time) {
	if h != nil {
		h.child.Until(deadline)
	}
}

// end ends the hook if it still runs.
func (h *hook) end(hurried context.Context) {
	if h == nil {
		return
	}
	h.ending.Store(true)
	h.child.End()
	h.wait(hurried)
}

// wait waits until the hook has ended, and kills it once hurried has.
func (h *hook) wait(hurried context.Context) {
	if h == nil {
		return
	}
	select {
	case <-h.done:
	case <-hurried.Done():
		h.child.Kill()
		<-h.done
	}
}
