package demo

import "time"

// scene is a few processes with one lock of their own.
type scene struct {
	lock  string
	title string
	// cast is who plays. Where the server is and what its keys begin with is filled in by Run.
	cast []part
	// nodes are servers of the scene's own, for those of the cast who take a lock on a quorum. They are embedded ones
	// wherever the demo plays, because cues stop them.
	nodes []string
	// first are those who begin at once. The others wait for a cue.
	first []string
	// react gives cues upon what happened. It may be nil.
	react func(cues cues, e event)
	// verdict tells what did not go as promised. It gets all events of this lock, in the order of time.
	verdict func(history []event) []string
}

// cues is what a scene can tell the stage to do.
type cues interface {
	begin(process string)
	leave(process string)
	kill(process string)
	stop(node string)
	after(d time.Duration, do func())
}

// patient is a wait that is not meant to end by itself.
const patient = 10 * time.Second

// slack is how much later than promised something may happen on a machine that has other things to do.
const slack = time.Second

// scenes are what the demo plays, all at the same time. If unlocked, the counter scene does without its lock.
func scenes(unlocked bool) []scene {
	all := []scene{
		counterScene(unlocked), queueScene(), readWriteScene(),
		transferScene(), redlockScene(), watchdogScene(), takeoverScene(), timeoutScene(),
	}
	for _, s := range all {
		for i := range s.cast {
			s.cast[i].Lock = s.lock
		}
	}
	return all
}

// find returns the first event of that kind of a process.
func find(history []event, process string, k kind) (e event, ok bool) {
	for _, e := range history {
		if e.Process == process && e.Kind == k {
			return e, true
		}
	}
	return event{}, false
}

// count is how many events of that kind a process has.
func count(history []event, process string, k kind) (n int) {
	for _, e := range history {
		if e.Process == process && e.Kind == k {
			n++
		}
	}
	return n
}

// findAll returns the events of these kinds of a process, in order; false if one of them is missing.
func findAll(history []event, process string, kinds ...kind) (found []event, ok bool) {
	for _, k := range kinds {
		e, ok := find(history, process, k)
		if !ok {
			return nil, false
		}
		found = append(found, e)
	}
	return found, true
}
