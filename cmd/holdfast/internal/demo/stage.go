package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// frame is how often the stage looks at the clock.
	frame = 20 * time.Millisecond
	// mergeDelay is how long an event waits for earlier ones of other processes: each has a pipe of
	// its own, so that what happened first may arrive last.
	mergeDelay = 100 * time.Millisecond
)

// stage runs the processes of all scenes. Only the reading of their output happens outside its
// goroutine.
type stage struct {
	scenes  []scene
	nodes   nodes       // that cues can stop
	tell    func(event) // is called for each event, ordered by time except for late ones
	events  chan event
	readers sync.WaitGroup

	processes map[string]*process
	clients   []string // the ids of their clients
	running   int
	clock     clock
	pending   []event // that wait for earlier ones
	history   []event
	seen      map[string]int // by the name of an event
	cues      []cue          // to come
	due       []timed        // the same, once it is known when
	failed    bool           // a process has reported that it failed
	stalls    stalls         // of this process, which may have the server in it
}

// timed is something to do at a time.
type timed struct {
	at time.Duration
	do string
}

// Reasons why the scenes did not come to an end. What happened until then is judged all the same.
var (
	errTooLong = errors.New("the scenes did not come to an end in time")
	errStopped = errors.New("the scenes were stopped, because a process failed")
)

// play runs all scenes and returns what happened, ordered by time. When ctx ends it returns the
// cause, and when a process fails errStopped, with what happened so far. No process is left when it
// returns.
func (s *stage) play(ctx context.Context, program string) ([]event, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer s.readers.Wait()
	defer cancel() // kills what still runs
	s.events = make(chan event)
	s.processes, s.seen = map[string]*process{}, map[string]int{}
	for _, scene := range s.scenes {
		s.cues = append(s.cues, scene.cues...)
		for _, p := range scene.cast {
			if err := s.launch(ctx, program, p); err != nil {
				return nil, err
			}
		}
	}
	if err := s.allReady(ctx); err != nil {
		return nil, err
	}
	start := time.Now()
	s.clock = clock{origin: start}
	for _, p := range s.processes {
		p.tell(start)
	}
	s.readers.Go(func() { s.stalls.watch(ctx.Done()) })
	ticker := time.NewTicker(frame)
	defer ticker.Stop()
	for s.running > 0 || len(s.pending) > 0 {
		select {
		case e := <-s.events:
			s.arrived(e)
		case <-ticker.C:
			if s.tick(s.clock.now()); s.failed {
				return s.sorted(), errStopped
			}
		case <-ctx.Done():
			return s.sorted(), context.Cause(ctx)
		}
	}
	return s.sorted(), nil
}

// sorted returns the history ordered by time, because an event may have come late.
func (s *stage) sorted() []event {
	slices.SortStableFunc(s.history, byTime)
	return s.history
}

func byTime(a, b event) int { return cmp.Compare(a.At, b.At) }

// launch starts a process and a goroutine that reads what it reports.
func (s *stage) launch(ctx context.Context, program string, p part) error {
	w, err := start(ctx, program, p)
	if err != nil {
		return err
	}
	s.processes[p.Process] = w
	s.running++
	report := func(e event) {
		select {
		case s.events <- e:
		case <-ctx.Done():
		}
	}
	s.readers.Go(func() {
		e := event{Kind: ended, Process: p.Process, Lock: p.Lock}
		if err := w.follow(report); err != nil {
			e.Error = err.Error()
		}
		report(e)
	})
	return nil
}

// allReady waits until every process is connected.
func (s *stage) allReady(ctx context.Context) error {
	for len(s.clients) < len(s.processes) {
		select {
		case e := <-s.events:
			switch e.Kind {
			case ready:
				s.clients = append(s.clients, e.Owner)
			case failed:
				return fmt.Errorf("process %s: %s", e.Process, e.Error)
			default:
				return fmt.Errorf("process %s ended early: %s\n%s", e.Process, e.Error,
					s.processes[e.Process].lastWords())
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// arrived adds an event that just came from a process.
func (s *stage) arrived(e event) {
	if e.Kind == ended {
		s.running--
		e.At = s.clock.now()
		e.Error = s.ending(e)
	}
	s.pending = append(s.pending, e)
}

// ending returns what is wrong with how a process ended; "" if nothing is.
func (s *stage) ending(e event) string {
	reported := func(k kind) bool {
		isIt := func(other event) bool { return other.Process == e.Process && other.Kind == k }
		return slices.ContainsFunc(s.history, isIt) || slices.ContainsFunc(s.pending, isIt)
	}
	words := s.processes[e.Process].lastWords()
	switch {
	case reported(killed):
		return "" // as intended
	case e.Error == "", reported(failed):
		return words // worth showing even if it went well
	default:
		return strings.TrimSpace(e.Error + "\n" + words)
	}
}

// tick does what is due by the clock.
func (s *stage) tick(now time.Duration) {
	slices.SortStableFunc(s.pending, byTime)
	for len(s.pending) > 0 && s.pending[0].At <= now-mergeDelay {
		e := s.pending[0]
		s.pending = s.pending[1:]
		s.history = append(s.history, e)
		s.seen[e.name()]++
		s.failed = s.failed || e.Kind == failed
		s.tell(e)
	}
	s.cues = slices.DeleteFunc(s.cues, func(c cue) bool {
		if !s.happened(c.when) {
			return false
		}
		s.due = append(s.due, timed{now + c.after, c.do})
		return true
	})
	s.due = slices.DeleteFunc(s.due, func(t timed) bool {
		if t.at <= now {
			s.do(t.do)
		}
		return t.at <= now
	})
}

// happened reports whether all events of a cue have been seen.
func (s *stage) happened(when string) bool {
	for name := range strings.SplitSeq(when, ", ") {
		words := strings.Fields(name)
		times := 1
		if len(words) > 2 {
			times, _ = strconv.Atoi(words[2])
		}
		if s.seen[words[0]+" "+words[1]] < times {
			return false
		}
	}
	return true
}

// do does what a cue says: a verb, and whom it concerns.
func (s *stage) do(what string) {
	words := strings.Fields(what)
	for _, name := range words[1:] {
		switch words[0] {
		case "go":
			s.processes[name].tell("go")
		case "kill":
			p := s.processes[name]
			s.add(killed, name, p.part.Lock)
			p.kill()
		case "stop":
			for _, scene := range s.scenes {
				if slices.Contains(scene.nodes, name) {
					s.add(died, name, scene.lock)
				}
			}
			s.nodes[name].Close()
		}
	}
}

// add adds an event of the stage itself.
func (s *stage) add(k kind, name, lock string) {
	s.pending = append(s.pending, event{Kind: k, At: s.clock.now(), Process: name, Lock: lock})
}
