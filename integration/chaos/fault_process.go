package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"syscall"
	"time"

	"holdfast/integration/history"
)

// The faults of client processes.
var (
	// ProcessStopped stops a process, often for longer than its leases last, and resumes it.
	ProcessStopped = Fault{Name: "process stopped", lasts: 2, settles: command,
		begin: func(r *run) ([]string, func()) {
			s := r.victim()
			p, name := s.process, s.name()
			r.log.add(history.Event{At: history.Now(), What: history.Stopped, Process: name})
			p.signal(r.tb, syscall.SIGSTOP)
			return []string{name}, func() {
				p.signal(r.tb, syscall.SIGCONT) // also if it was killed meanwhile
				r.log.add(history.Event{At: history.Now(), What: history.Resumed, Process: name})
			}
		}}

	// HolderKilled kills a process that was granted a lock after a wait, and later starts another.
	HolderKilled = Fault{Name: "holder killed", lasts: 1, settles: command, wait: func(r *run) {
		for late := time.Now().Add(holderWait); r.holder() == nil && time.Now().Before(late); {
			r.rest(5 * time.Millisecond)
		}
	}, begin: func(r *run) ([]string, func()) {
		s := r.holder()
		if s == nil {
			return nil, nil
		}
		return r.kill(s)
	}}

	// ProcessKilled kills a process in the middle of whatever it does, and later starts another.
	ProcessKilled = Fault{Name: "process killed", lasts: 1, settles: command,
		begin: func(r *run) ([]string, func()) {
			return r.kill(r.victim())
		}}

	// ClientClosed closes the clients of a process in the middle of whatever it does with them, and
	// later starts another process. It happens in bubbles only.
	ClientClosed = Fault{Name: "client closed", lasts: 1, settles: command,
		begin: func(r *run) ([]string, func()) {
			s := r.victim()
			name := s.name()
			s.process.(*virtualProcess).close()
			return []string{name}, r.replace(s)
		}}
)

// holderWait is how long HolderKilled waits for a process to kill.
const holderWait = 4 * time.Second

// holder returns the slot of a process that holds a lock for which it had waited; nil if there is
// none.
func (r *run) holder() *slot {
	holder := r.log.holder(cmp.Or(r.scenario.Abandoned, r.scenario.lease()))
	i := slices.IndexFunc(r.slots, func(s *slot) bool { return s.name() == holder })
	if i < 0 {
		return nil
	}
	return r.slots[i]
}

// kill kills the process of a slot. It returns a function that starts another.
func (r *run) kill(s *slot) ([]string, func()) {
	name := s.name()
	s.process.kill(r.tb)
	return []string{name}, r.replace(s)
}

// replace returns a function that starts the next process of a slot, unless another fault did.
func (r *run) replace(s *slot) func() {
	old := s.process
	return func() {
		if s.process == old {
			s.restarts++
			r.startProcess(s)
		}
	}
}

// name returns the name of the slot's current process: a new one after each restart.
func (s *slot) name() string {
	if s.restarts == 0 {
		return fmt.Sprintf("p%d", s.index+1)
	}
	return fmt.Sprintf("p%d-%d", s.index+1, s.restarts+1)
}
