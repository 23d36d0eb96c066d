package chaos

import (
	"fmt"
	"syscall"

	"holdfast/integration/history"
)

// The faults of client processes.
var (
	// ProcessStopped stops a process, often for longer than its leases last, and lets it go on.
	ProcessStopped = Fault{Name: "process stopped", lasts: 2, settles: command, begin: func(r *run) ([]string, func()) {
		p := r.victim().process
		r.log.add(history.Event{At: history.Now(), What: history.Stopped, Process: p.name})
		p.signal(r.tb, syscall.SIGSTOP)
		return []string{p.name}, func() {
			p.signal(r.tb, syscall.SIGCONT) // also if it was killed meanwhile
			r.log.add(history.Event{At: history.Now(), What: history.Resumed, Process: p.name})
		}
	}}

	// ProcessKilled kills a process in the middle of whatever it does, and later starts another.
	ProcessKilled = Fault{Name: "process killed", lasts: 1, settles: command, begin: func(r *run) ([]string, func()) {
		s := r.victim()
		name := s.process.name
		s.process.kill(r.tb)
		return []string{name}, func() {
			s.restarts++
			r.startProcess(s)
		}
	}}
)

// name is that of the process that the slot has now: another one after each restart.
func (s *slot) name() string {
	if s.restarts == 0 {
		return fmt.Sprintf("p%d", s.index+1)
	}
	return fmt.Sprintf("p%d-%d", s.index+1, s.restarts+1)
}
