package demo

import "time"

// scene is a few processes with one lock of their own.
type scene struct {
	lock  string
	title string
	// cast are the parts. Run enters the server and the prefix of the keys.
	cast []part
	// nodes are the scene's own servers, for locks over a quorum. They are always embedded, because
	// cues stop them.
	nodes []string
	// first are the processes that begin at once. The others wait for a cue.
	first []string
	// react gives cues when something happened. It may be nil.
	react func(cues cues, e event)
	// verdict returns what did not go as promised. history holds all events of this lock, ordered
	// by time.
	verdict func(history []event) []string
}

// cues is what a scene can have the stage do.
type cues interface {
	begin(process string)
	leave(process string)
	kill(process string)
	stop(node string)
	after(d time.Duration, do func())
}

// longWait is a wait that is not meant to end by itself.
const longWait = 10 * time.Second

// slack is how much later than promised something may happen on a busy machine.
const slack = time.Second

// scenes returns the scenes of the demo, which are played at the same time. If unlocked, the
// counter scene leaves out its lock.
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

// find returns the first event of this kind of a process.
func find(history []event, process string, k kind) (e event, ok bool) {
	for _, e := range history {
		if e.Process == process && e.Kind == k {
			return e, true
		}
	}
	return event{}, false
}

// count returns the number of events of this kind of a process.
func count(history []event, process string, k kind) (n int) {
	for _, e := range history {
		if e.Process == process && e.Kind == k {
			n++
		}
	}
	return n
}

// findAll returns the first event of each of these kinds of a process, in that order; false if one
// is missing.
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
