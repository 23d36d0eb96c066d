package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast/cmd/holdfast/internal/child"
	"holdfast/cmd/holdfast/internal/status"
	"holdfast/cmd/holdfast/internal/textfile"
	"holdfast/rlock"
)

// Run acquires the lock, runs the command, and releases the lock when the command has ended. The
// error has the exit status; without a text, if that is the command's own.
func Run(o Options) error { return o.report(o.run()) }

func (o Options) run() error {
	if err := o.check(); err != nil {
		return err
	}
	if o.MetricsFile != "" {
		o.metrics = textfile.New(o.MetricsFile, o.Name, func(err error) {
			o.warn("cannot write --metrics-file: %v; check the folder and its permissions", err)
		})
		defer o.metrics.Close()
	}
	signals := make(chan os.Signal, 64)
	caught := make(chan struct{})
	go func() {
		// The runtime changes the thread twice for each of these signals, so run catches them while it
		// connects. A signal that comes before that ends run, which has no lock yet.
		signal.Notify(signals, child.Forwarded()...)
		close(caught)
	}()
	surviveClosedOutput()
	defer child.ReapOrphans()()
	l, hold, err := o.acquire(signals, caught)
	if l != nil {
		defer l.close()
	}
	if err != nil {
		return err
	}
	l.noteHold(o.Lease)
	o.metrics.Began()
	began := time.Now()
	err = o.underLock(hold, signals)
	o.metrics.Ended(status.Code(err), time.Since(began))
	return err
}

// acquired is the result of an acquisition.
type acquired struct {
	lock *lock
	hold *rlock.Hold
	err  error
}

// acquire connects, and acquires the lock once signals are caught. A signal ends that.
func (o Options) acquire(signals <-chan os.Signal, caught <-chan struct{},
) (*lock, *rlock.Hold, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	result, began := make(chan acquired, 1), time.Now()
	var until time.Time
	if o.Wait > rlock.NoWait && o.Wait != rlock.Forever {
		until = time.Now().Add(o.Wait)
	}
	go func() {
		l, err := o.open(ctx, until)
		<-caught
		if err != nil {
			result <- acquired{err: err}
			return
		}
		var hold *rlock.Hold
		err = o.refuseOwn(ctx, l)
		if err == nil {
			hold, err = o.await(ctx, l, until)
		}
		if err == nil {
			hold, err = o.extend(ctx, hold)
		}
		result <- acquired{l, hold, err}
	}()
	var interrupt error
	for {
		select {
		case s := <-signals:
			number := s.(syscall.Signal) // it has no other type
			if isHarmless(number) {
				continue
			} else if interrupt != nil {
				return nil, nil, interrupt // the second one: the lease ends by itself
			}
			interrupt = status.New(status.Signal+int(number),
				fmt.Errorf("lock %q: not acquired, because of a signal (%v)", o.Name, s))
			cancel()
		case a := <-result:
			if interrupt != nil && a.hold != nil {
				_ = a.hold.Unlock() // otherwise its lease ends
			}
			if interrupt != nil {
				a.err = interrupt
			} else if a.err != nil {
				if a.lock == nil {
					o.metrics.Unreachable(o.traced(), a.err, time.Since(began))
				}
				a.err = o.acquireError(a.err, a.lock)
			}
			return a.lock, a.hold, a.err
		}
	}
}

// await waits for the lock. If connecting took all of the wait, it tries once.
func (o Options) await(ctx context.Context, l *lock, until time.Time) (*rlock.Hold, error) {
	limit := o.Wait
	if !until.IsZero() {
		limit = max(time.Until(until), rlock.NoWait)
	}
	if o.Quiet || limit == rlock.NoWait {
		return l.TryLock(ctx, limit, rlock.Watchdog)
	}
	telling, stop := context.WithCancel(ctx)
	told, began := make(chan struct{}), time.Now()
	go func() {
		defer close(told)
		o.showWait(telling, l)
	}()
	hold, err := l.TryLock(ctx, limit, rlock.Watchdog)
	stop()
	<-told
	if took := time.Since(began); err == nil && took > unremarkable {
		o.note("lock %q: acquired after %v", o.Name, took.Round(100*time.Millisecond))
	}
	return hold, err
}

// extend makes a lock that was handed over last for the whole lease. Until it is renewed it has a
// short one, which may be less than the time that the command is given to end.
func (o Options) extend(ctx context.Context, hold *rlock.Hold) (*rlock.Hold, error) {
	if time.Until(hold.Deadline()) > o.Lease*2/3 {
		return hold, nil
	}
	if err := hold.Extend(ctx, rlock.Watchdog); err != nil {
		return nil, errors.Join(err, hold.Unlock())
	}
	return hold, nil
}

// underLock runs the command under the lock, and releases it.
func (o Options) underLock(hold *rlock.Hold, signals chan os.Signal) error {
	command := child.Command{Args: o.Args, Env: environment(o, hold), Signals: signals,
		KillAfter: o.killAfter(), Reserve: o.reserve()}
	if !o.Ignore {
		command.Deadline = hold.Deadline()
	}
	if child.ChangesUser(o.Args[0]) {
		o.note("lock %q: %s changes its user, so holdfast cannot kill it if the lock is lost; start "+
			"holdfast run as that user instead", o.Name, o.Args[0])
	}
	signal.Notify(signals, child.JobControl()...)
	ch, err := child.Start(command)
	if err != nil {
		_ = o.release(hold) // nothing ran under it
		return status.New(status.NotExecutable, fmt.Errorf("cannot start the command %s: %w",
			o.Args[0], err))
	}
	stopped, overdue := o.supervise(hold, ch)
	lost := o.release(hold)
	switch {
	case lost != nil && o.Ignore: // it may have been lost after the last renewal
		o.warn("%v; the command ended with status %d (--on-lost ignore)", lost,
			ch.Status())
	case o.Ignore:
	case stopped: // which was said
		return status.New(status.Lost, nil)
	case lost != nil:
		return status.New(status.Lost, fmt.Errorf("%w; the command ended with status %d", lost,
			ch.Status()))
	}
	if overdue { // which was said
		return status.New(status.TimedOut, nil)
	}
	if ch.Status() == 0 {
		return nil
	}
	return status.New(ch.Status(), nil)
}

// supervise ends the command when the lock is lost, or about to be, and when its time is over. It
// returns when the command has ended, and whether it was ended for one of the two.
func (o Options) supervise(hold *rlock.Hold, ch *child.Child) (stopped, overdue bool) {
	// A renewal moves the deadline; it comes at each third of the lease.
	tick := time.NewTicker(min(max(o.Lease/30, 10*time.Millisecond), time.Second))
	defer tick.Stop()
	s := supervision{Options: o, hold: hold, child: ch, lost: hold.Done()}
	var over <-chan time.Time
	if o.MaxRuntime > 0 {
		over = time.After(o.MaxRuntime)
	}
	deadline := hold.Deadline()
	for {
		select {
		case <-over:
			s.overdue = true
			s.warn("lock %q: the command has run for %v (--max-runtime), and is being ended", s.Name,
				o.MaxRuntime)
			ch.End()
		case <-tick.C:
			// A deadline that moves would withdraw the order to end the command.
			moved := hold.Deadline()
			if !o.Ignore && s.lost != nil && !s.overdue && moved != deadline {
				deadline = moved
				ch.Until(deadline)
			}
		case <-s.lost:
			s.lose(hold.Err())
		case r := <-ch.Reports():
			s.hear(r)
		case <-ch.Done():
			for len(ch.Reports()) > 0 {
				s.hear(<-ch.Reports())
			}
			if s.survived {
				s.warn("lock %q: the command has ended", s.Name)
			}
			return s.stopped, s.overdue
		}
	}
}

// supervision is what happened to a command and its lock so far.
type supervision struct {
	Options
	hold    *rlock.Hold
	child   *child.Child
	lost    <-chan struct{} // closed by a loss; nil once that was handled
	stopped bool            // the command was ended because of its lock
	overdue bool            // the command was ended because of --max-runtime
	ended   bool            // it has ended by itself

	survived bool // something could not be ended
}

// lose handles the loss of the lock.
func (s *supervision) lose(err error) {
	s.lost = nil
	s.stopped = s.stopped || !s.Ignore
	switch {
	case s.Ignore:
		s.warn("%v; the command continues (--on-lost ignore)", err)
	case errors.Is(err, rlock.ErrExpired):
		s.warn("%v", err)
		s.child.Kill() // the guard has done so, unless it hangs
	default:
		s.warn("%v; the command is being ended", err)
		s.child.End()
	}
}

// hear handles what happened to the command.
func (s *supervision) hear(r child.Report) {
	switch {
	case r.Event == child.LeftBehind:
		s.ended = true
		if !s.stopped && !s.overdue {
			s.note("lock %q: the command has ended, and its remaining processes are being ended", s.Name)
		}
	case r.Event == child.Terminated && !s.ended && !s.stopped && !s.overdue:
		s.stopped = true
		s.warn("lock %q: not renewed, and may be lost in %v; the command is being ended", s.Name,
			time.Until(s.hold.Deadline()).Round(100*time.Millisecond))
	case r.Event == child.Killed:
		s.stopped = s.stopped || !s.ended && !s.overdue
		if len(r.Survivors) == 0 {
			s.warn("lock %q: the command was killed", s.Name)
		}
		s.report(r.Survivors)
	case r.Event == child.Abandoned:
		s.report(r.Survivors)
		s.survived = false // it still does
	}
}

// report says which processes live on, by the reason why they do.
func (s *supervision) report(survivors []child.Survivor) {
	for _, refused := range []bool{true, false} {
		var names []string
		var reason error
		for _, p := range survivors {
			if (p.Refused != nil) == refused {
				names, reason = append(names, p.String()), p.Refused
			}
		}
		switch who := strings.Join(names, ", "); {
		case len(names) == 0:
			continue
		case refused:
			s.warn("lock %q: cannot kill %s, which continues without the lock: %v; end the process "+
				"as its user or as root", s.Name, who, reason)
		default:
			s.warn("lock %q: %s did not end after SIGKILL, because the process is stuck in the "+
				"kernel; it may continue without the lock, so check the machine", s.Name, who)
		}
		s.survived = true
	}
}

// release releases the lock. It returns an error if the lock was lost before.
func (o Options) release(hold *rlock.Hold) error {
	err := hold.Unlock()
	switch {
	case err == nil:
	case errors.Is(err, rlock.ErrLost):
		return err
	default:
		o.warn("%v; the lock becomes free when its lease ends, in at most %v", err, o.Lease)
	}
	return nil
}

const (
	// lockVariable is the variable with the name of the lock.
	lockVariable = "HOLDFAST_LOCK"
	// eventVariable is the variable with the event that a hook is for.
	eventVariable = "HOLDFAST_EVENT"
)

// environment returns the environment of the command.
func environment(o Options, hold *rlock.Hold) []string {
	// A command may be a run inside another one.
	outer := func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{lockVariable, child.OwnerVariable, eventVariable,
			"HOLDFAST_TOKEN", "HOLDFAST_DEADLINE"}, name)
	}
	env := append(slices.DeleteFunc(os.Environ(), outer),
		lockVariable+"="+o.Name,
		child.OwnerVariable+"="+hold.Owner(),
		"HOLDFAST_DEADLINE="+strconv.FormatInt(hold.Deadline().UnixMilli(), 10))
	if token := hold.Token(); token != 0 {
		env = append(env, "HOLDFAST_TOKEN="+strconv.FormatInt(token, 10))
	}
	return env
}
