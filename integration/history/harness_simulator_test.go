package history

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

var simNames = []Lock{{"plain", Plain}, {"fair", Fair}, {"fenced", Fenced}, {"rw", Read},
	{"rw", Read}, {"rw", Write}, {"quorum", Quorum}}

// simBounds are the bounds that the simulated runs keep.
var simBounds = Bounds{
	Lease:   2 * time.Second,
	Command: 500 * time.Millisecond,
	Slack:   300 * time.Millisecond,
	WakeUp:  300 * time.Millisecond,
	Strict:  true,
}

// simulator is a server with locks and some processes that use them, in simulated time. Without a
// defect the locks are perfect, and faults have only the effects that they may have.
type simulator struct {
	random    *rand.Rand
	defect    string
	end       Instant
	now       Instant
	due       timers
	serial    int
	events    []Event
	locks     map[string]*simLock
	processes map[string]*simProcess
	names     []Lock // the workers' locks; kinds that go together share a name
	fixed     bool   // some leases are explicit
	multi     bool   // some calls acquire two locks
	long      bool   // some holds last longer than a lease
}

type simLock struct {
	fair    bool
	token   int64
	holds   []*simLevel // in the order of their acquisition
	waiters []*simLevel
}

type simProcess struct {
	name                string
	killed              bool
	stopped, cut        bool
	numbers             int
	cutUntil, stopUntil Instant
}

// simLevel is one acquisition.
type simLevel struct {
	process  *simProcess
	worker   int
	number   int
	root     *simLevel
	locks    []Lock
	wait     time.Duration
	lease    time.Duration
	fixed    bool
	asked    Instant
	held     bool
	expiry   Instant
	deadline Instant // the holder's
	token    int64
	answered bool
	asking   bool
	retry    bool
	lost     bool
	then     func(granted bool)
}

type timer struct {
	at     Instant
	serial int
	run    func()
}

type timers []timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].serial < t[j].serial
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any     { last := (*t)[len(*t)-1]; *t = (*t)[:len(*t)-1]; return last }

func newSimulator(seed uint64, length time.Duration, names ...Lock) *simulator {
	s := &simulator{random: rand.New(rand.NewPCG(seed, 1)), now: 1e9, locks: map[string]*simLock{},
		processes: map[string]*simProcess{}, names: names}
	s.end = s.now.Add(length)
	for _, lock := range names {
		s.locks[lock.Name] = &simLock{fair: lock.Kind == Fair}
	}
	return s
}

func (s *simulator) chance(percent int) bool { return s.random.IntN(100) < percent }

func (s *simulator) between(from, to time.Duration) time.Duration {
	return from + time.Duration(s.random.Int64N(int64(to-from)))
}

func (s *simulator) after(d time.Duration, run func()) {
	s.serial++
	heap.Push(&s.due, timer{s.now.Add(d), s.serial, run})
}

// client runs something in a process: not while it is stopped, and not after it was killed.
func (s *simulator) client(p *simProcess, d time.Duration, run func()) {
	s.after(d, func() {
		switch {
		case p.killed:
		case p.stopped:
			s.client(p, max(1, p.stopUntil.Sub(s.now)+1), run)
		default:
			run()
		}
	})
}

func (s *simulator) record(e Event) {
	e.At = s.now
	s.events = append(s.events, e)
}

func (s *simulator) report(l *simLevel, e Event) {
	e.Process, e.Number = l.process.name, l.number
	s.record(e)
}

// latency returns that of a request or a reply.
func (s *simulator) latency() time.Duration {
	return s.between(50*time.Microsecond, 3*time.Millisecond)
}

// request makes the server execute something, possibly several times. It calls done with the
// result; known is false if it is unknown whether it was executed.
func (s *simulator) request(p *simProcess, execute func() bool, done func(ok, known bool)) {
	if p.cut {
		if s.chance(50) { // only the reply is lost
			s.after(s.latency(), func() { execute() })
		}
		if back := p.cutUntil.Sub(s.now); back < simBounds.Command {
			s.client(p, back+1, func() { s.request(p, execute, done) })
		} else {
			s.client(p, simBounds.Command, func() { done(false, false) })
		}
		return
	}
	s.after(s.latency(), func() {
		ok := execute()
		s.client(p, s.latency(), func() { done(ok, true) })
	})
}

// worker acquires one lock after another.
func (s *simulator) worker(p *simProcess, worker int) {
	if s.now >= s.end {
		return
	}
	lock := s.names[s.random.IntN(len(s.names))]
	l := s.level(p, worker, []Lock{lock})
	if other := s.names[s.random.IntN(len(s.names))]; s.multi && s.chance(10) &&
		other.Name != lock.Name {
		l.locks = append(l.locks, other)
	}
	waits := []time.Duration{0, s.between(time.Millisecond, time.Second), 3 * time.Second, -1}
	l.wait = waits[s.random.IntN(len(waits))]
	l.then = func(granted bool) {
		next := func() {
			s.client(p, s.between(0, 20*time.Millisecond), func() { s.worker(p, worker) })
		}
		if granted {
			s.work(l, next)
		} else {
			next()
		}
	}
	s.ask(l)
}

func (s *simulator) level(p *simProcess, worker int, locks []Lock) *simLevel {
	p.numbers++
	l := &simLevel{process: p, worker: worker, number: p.numbers, locks: locks,
		lease: simBounds.Lease}
	l.root = l
	if s.fixed && s.chance(30) {
		l.lease, l.fixed = s.between(20*time.Millisecond, time.Second), true
	}
	return l
}

func (s *simulator) ask(l *simLevel) {
	l.asked = s.now
	e := Event{What: Asked, Locks: l.locks, Wait: l.wait, Lease: l.lease, Fixed: l.fixed}
	if l.root != l {
		e.Root = l.root.number
	}
	s.report(l, e)
	if l.wait > 0 {
		wait := l.wait
		if s.defect == "waits too long" {
			wait *= 3
		}
		if s.defect == "gives up early" {
			wait /= 2
		}
		s.client(l.process, wait, func() { s.giveUp(l) })
	}
	s.try(l)
}

// giveUp ends the wait when its time is over, unless a reply is on its way.
func (s *simulator) giveUp(l *simLevel) {
	if l.answered || l.asking {
		return
	}
	s.answer(l, Refused)
}

func (s *simulator) try(l *simLevel) {
	if l.answered || l.asking {
		l.retry = true
		return
	}
	l.asking, l.retry = true, false
	sent := s.now
	s.request(l.process, func() bool { return s.acquire(l) }, func(ok, known bool) {
		l.asking = false
		switch {
		case !known:
			s.answer(l, Unknown)
		case ok:
			l.deadline = sent.Add(l.lease * 99 / 100)
			if s.defect == "no deadline" {
				l.deadline = s.end.Add(time.Hour)
			}
			if s.now >= l.deadline { // too late to be of use
				s.answer(l, Unknown)
				return
			}
			if s.defect == "loses an answer" && s.chance(2) {
				s.answer(l, Unknown)
				return
			}
			s.answer(l, Granted)
		case l.wait == 0 || l.wait > 0 && s.now >= l.asked.Add(l.wait) &&
			s.defect != "waits too long":
			s.answer(l, Refused)
		case l.wait < 0 && s.now >= s.end:
			s.answer(l, Failed)
		case l.retry: // woken meanwhile
			s.try(l)
		}
	})
}

func (s *simulator) answer(l *simLevel, what What) {
	l.answered = true
	e := Event{What: what}
	if what == Granted {
		e.Owner, e.Token = fmt.Sprintf("%s:%d", l.process.name, l.root.number), l.token
	}
	s.report(l, e)
	for _, lock := range l.locks {
		k := s.locks[lock.Name]
		k.waiters = slices.DeleteFunc(k.waiters, func(w *simLevel) bool { return w == l })
		s.after(s.latency(), func() { s.wake(k) })
	}
	l.then(what == Granted)
}

// acquire is executed by the server.
func (s *simulator) acquire(l *simLevel) bool {
	if l.held {
		return true
	}
	for _, lock := range l.locks {
		if k := s.locks[lock.Name]; !s.free(k, l, lock.Kind) &&
			(s.defect != "no exclusion" || !s.chance(1)) {
			if l.wait != 0 && !l.answered && !slices.Contains(k.waiters, l) {
				k.waiters = append(k.waiters, l)
				if s.defect == "last come first served" {
					slices.Reverse(k.waiters)
				}
			}
			return false
		}
	}
	if s.defect == "refuses a free lock" && l.wait == 0 && s.chance(10) {
		return false
	}
	l.held = true
	for _, lock := range l.locks {
		k := s.locks[lock.Name]
		if lock.Kind == Fenced {
			if !slices.ContainsFunc(k.holds, func(o *simLevel) bool { return o.root == l.root }) {
				k.token++
				if s.defect == "tokens stand still" && s.chance(2) {
					k.token--
				}
			}
			l.token = k.token
		}
		k.holds = append(k.holds, l)
		k.waiters = slices.DeleteFunc(k.waiters, func(w *simLevel) bool { return w == l })
	}
	s.extend(l, l.lease)
	return true
}

// free reports whether l may acquire the lock.
func (s *simulator) free(k *simLock, l *simLevel, kind Kind) bool {
	mine := false
	for _, o := range k.holds {
		if o.root == l.root {
			mine = true
		} else if kind != Read || s.kind(o, k) != Read {
			return false
		}
	}
	if k.fair && !mine && s.defect != "barging" {
		for _, w := range k.waiters {
			if w == l {
				break
			}
			if s.reachable(w) {
				return false
			}
		}
	}
	return true
}

func (s *simulator) kind(l *simLevel, k *simLock) Kind {
	for _, lock := range l.locks {
		if s.locks[lock.Name] == k {
			return lock.Kind
		}
	}
	panic("not its lock")
}

func (s *simulator) reachable(l *simLevel) bool {
	return !l.process.killed && !l.process.stopped && !l.process.cut
}

// extend sets when the hold ends by itself. Of several levels the longest lease counts.
func (s *simulator) extend(l *simLevel, lease time.Duration) {
	l.expiry = s.now.Add(lease)
	k := s.locks[l.locks[0].Name]
	for _, o := range k.holds {
		if o.root == l.root {
			l.expiry = max(l.expiry, o.expiry)
		}
	}
	for _, o := range append(slices.Clone(k.holds), l) {
		if o.root == l.root {
			o.expiry = l.expiry
			s.after(o.expiry.Sub(s.now), func() {
				if o.held && s.now >= o.expiry {
					s.drop(o)
				}
			})
		}
	}
}

func (s *simulator) drop(l *simLevel) {
	l.held = false
	for _, lock := range l.locks {
		k := s.locks[lock.Name]
		k.holds = slices.DeleteFunc(k.holds, func(o *simLevel) bool { return o == l })
		if s.defect != "no wake-up" {
			s.wake(k)
		}
	}
}

// wake makes the waiters ask again.
func (s *simulator) wake(k *simLock) {
	for _, w := range k.waiters {
		if s.reachable(w) {
			s.client(w.process, s.latency(), func() { s.try(w) })
		}
	}
}

func (s *simulator) wakeAll() {
	for _, lock := range s.names {
		s.wake(s.locks[lock.Name])
	}
}

// work works while the hold is valid, perhaps relocks it meanwhile, and releases it.
func (s *simulator) work(l *simLevel, then func()) {
	if !l.fixed {
		s.renew(l)
	}
	until := s.now.Add(s.between(0, 30*time.Millisecond))
	if l.fixed && s.chance(30) { // too long
		until = s.now.Add(l.lease + s.between(0, 100*time.Millisecond))
	}
	if s.long && !l.fixed && s.chance(3) {
		until = s.now.Add(s.between(0, 2*simBounds.Lease))
	}
	if l.root == l && len(l.locks) == 1 && s.chance(20) {
		inner := s.level(l.process, l.worker, l.locks)
		inner.root, inner.lease, inner.fixed = l, l.lease, l.fixed
		inner.then = func(granted bool) {
			if granted {
				s.work(inner, func() { s.proceed(l, until, then) })
			} else {
				s.proceed(l, until, then)
			}
		}
		s.ask(inner)
		return
	}
	s.proceed(l, until, then)
}

func (s *simulator) proceed(l *simLevel, until Instant, then func()) {
	switch valid := !l.lost && s.now < l.deadline; {
	case !valid && !l.lost:
		l.lost = true
		s.report(l, Event{What: Lost, Error: "expired"})
		if s.chance(30) {
			then() // without Unlock
			return
		}
		s.unlock(l, then)
	case l.lost || s.now >= until:
		s.unlock(l, then)
	default:
		s.report(l, Event{What: Valid})
		s.client(l.process, s.between(time.Millisecond, 20*time.Millisecond), func() {
			s.proceed(l, until, then)
		})
	}
}

// renew is the watchdog.
func (s *simulator) renew(l *simLevel) {
	sent := s.now
	s.client(l.process, l.lease/3, func() {
		if l.lost || s.defect == "watchdog sleeps" {
			return
		}
		s.request(l.process, func() bool {
			if l.held {
				s.extend(l, l.lease)
			}
			return l.held
		}, func(ok, known bool) {
			switch {
			case l.lost:
			case known && !ok && l.deadline > 0:
				l.deadline = min(l.deadline, s.now) // gone, or released meanwhile
			case known:
				l.deadline = max(l.deadline, sent.Add(l.lease/3+l.lease*99/100))
				s.renew(l)
			default:
				s.renew(l)
			}
		})
	})
}

func (s *simulator) unlock(l *simLevel, then func()) {
	s.report(l, Event{What: Releasing})
	if s.defect == "slow release" {
		l.lost = true
		s.drop(l)
		s.client(l.process, simBounds.Command+2*simBounds.Slack, func() {
			s.report(l, Event{What: Released})
			then()
		})
		return
	}
	was := l.lost
	l.lost = true // ends the watchdog
	released := false
	s.request(l.process, func() bool {
		if s.defect == "release of any hold" && !l.held {
			for _, lock := range l.locks {
				for _, o := range slices.Clone(s.locks[lock.Name].holds) {
					s.drop(o)
				}
			}
		}
		if l.held {
			released = true
			s.drop(l)
		}
		return released
	}, func(ok, known bool) {
		switch {
		case !known:
			s.report(l, Event{What: Unconfirmed, Error: "time-out"})
		case ok && !was:
			s.report(l, Event{What: Released})
		default:
			s.report(l, Event{What: NotHeld, Error: "lost"})
		}
		then()
	})
}

// start starts a process, possibly in place of another.
func (s *simulator) start(name string, workers int) {
	p := &simProcess{name: name}
	s.processes[name] = p
	s.record(Event{What: Started, Process: name})
	for w := range workers {
		s.client(p, s.between(0, 10*time.Millisecond), func() { s.worker(p, w) })
	}
}

// fault does something bad to a process or to the server, from time to time.
func (s *simulator) fault(kinds []string, workers int) {
	s.after(s.between(300*time.Millisecond, 2*time.Second), func() {
		if s.now.Add(3*time.Second) >= s.end {
			return
		}
		names := make([]string, 0, len(s.processes))
		for name, p := range s.processes {
			if !p.killed {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		p := s.processes[names[s.random.IntN(len(names))]]
		length := s.between(10*time.Millisecond, 3*time.Second)
		until := s.now.Add(length)
		kind := kinds[s.random.IntN(len(kinds))]
		switch {
		case p.stopped || p.cut: // one at a time
		case kind == "kill":
			s.record(Event{What: Killed, Process: p.name})
			p.killed = true
			for _, k := range s.locks {
				k.waiters = slices.DeleteFunc(k.waiters, func(w *simLevel) bool {
					return w.process == p
				})
			}
			s.wakeAll()
			s.start(p.name+"'", workers)
		case kind == "stop":
			s.record(Event{What: Stopped, Process: p.name})
			p.stopped, p.stopUntil = true, until
			s.wakeAll()
			s.after(length, func() {
				p.stopped = false
				s.record(Event{What: Resumed, Process: p.name})
				s.wakeAll()
			})
		case kind == "cut":
			s.record(Event{What: Fault, Fault: "cut " + p.name, Processes: []string{p.name}})
			p.cut, p.cutUntil = true, until
			s.wakeAll()
			s.after(length, func() {
				p.cut = false
				s.record(Event{What: Healed, Fault: "cut " + p.name})
				s.wakeAll()
			})
		case kind == "forget":
			s.record(Event{What: Fault, Fault: fmt.Sprint("flush ", s.now), Forgets: true})
			name := s.events[len(s.events)-1].Fault
			s.after(s.between(0, 10*time.Millisecond), s.forget)
			s.after(20*time.Millisecond, func() { s.record(Event{What: Healed, Fault: name}) })
		}
		s.fault(kinds, workers)
	})
}

func (s *simulator) forget() {
	for _, k := range s.locks {
		for _, l := range slices.Clone(k.holds) {
			s.drop(l)
		}
		k.token = 0
	}
}

// watchQueues records queues as the runner does.
func (s *simulator) watchQueues() {
	s.after(s.between(5*time.Millisecond, 30*time.Millisecond), func() {
		for name, k := range s.locks {
			if k.fair && len(k.waiters) > 1 {
				e := Event{What: Queue, Name: name, Until: s.now.Add(s.latency())}
				for _, w := range k.waiters {
					e.Owners = append(e.Owners, fmt.Sprintf("%s:%d", w.process.name, w.root.number))
				}
				s.record(e)
			}
		}
		if s.now < s.end {
			s.watchQueues()
		}
	})
}

// run returns the history.
func (s *simulator) run(processes, workers int, faults []string) []Event {
	for i := range processes {
		s.start(fmt.Sprint("p", i), workers)
	}
	if len(faults) > 0 {
		s.fault(faults, workers)
	}
	s.watchQueues()
	s.after(s.end.Sub(s.now), func() { // calls without limit are cancelled
		s.record(Event{What: Stopping})
		for _, k := range s.locks {
			for _, w := range slices.Clone(k.waiters) {
				if w.wait < 0 {
					s.client(w.process, 0, func() {
						if !w.answered && !w.asking {
							s.answer(w, Failed)
						}
					})
				}
			}
		}
	})
	for len(s.due) > 0 {
		next := heap.Pop(&s.due).(timer)
		s.now = next.at
		next.run()
	}
	return s.close()
}

// close reports what is left.
func (s *simulator) close() []Event {
	var last Instant
	for _, e := range s.events {
		last = max(last, e.At)
	}
	s.now = last.Add(simBounds.Lease)
	seen := map[string]bool{}
	for _, lock := range s.names {
		if !seen[lock.Name] {
			seen[lock.Name] = true
			what := Free
			if s.defect == "never free" {
				what = Held
			}
			s.record(Event{What: what, Name: lock.Name})
		}
	}
	return s.events
}
