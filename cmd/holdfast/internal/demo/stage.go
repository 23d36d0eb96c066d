package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// frame is how often the stage looks at the clock and the view is drawn.
const frame = 20 * time.Millisecond

// stage runs the processes of all scenes. Only the reading of their output happens outside its
// goroutine.
type stage struct {
	scenes  []scene
	view    view
	nodes   nodes // that cues can stop
	events  chan event
	readers sync.WaitGroup

	processes map[string]*process
	running   int
	clock     clock
	start     time.Time
	merge     merge
	history   []event
	cues      []timed // to come
	failed    bool    // a process has reported that it failed
	stalls    stalls  // of this process, which may have the server in it
}

// timed is something to do at a time.
type timed struct {
	at time.Duration
	do func()
}

// play runs all scenes and returns what happened, ordered by time. When ctx ends it returns the
// cause, and when a process fails errStopped, with what happened so far. No process is left when it
// returns.
func (s *stage) play(ctx context.Context, program string) ([]event, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer s.readers.Wait()
	defer cancel() // kills what still runs
	s.events = make(chan event)
	s.processes = map[string]*process{}
	for _, scene := range s.scenes {
		for _, p := range scene.cast {
			if err := s.launch(ctx, program, p); err != nil {
				return nil, err
			}
		}
	}
	if err := s.allReady(ctx); err != nil {
		return nil, err
	}
	s.start = time.Now()
	s.clock = clock{origin: s.start}
	for _, scene := range s.scenes {
		for _, process := range scene.first {
			s.begin(process)
		}
	}
	s.readers.Go(func() { s.stalls.watch(ctx.Done()) })
	ticker := time.NewTicker(frame)
	defer ticker.Stop()
	for s.running > 0 || len(s.merge.pending) > 0 {
		select {
		case e := <-s.events:
			s.arrived(e)
		case <-ticker.C:
			if s.tick(); s.failed {
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
	for count := 0; count < len(s.processes); {
		select {
		case e := <-s.events:
			switch e.Kind {
			case ready:
				count++
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
	s.merge.add(e)
}

// ending returns what is wrong with how a process ended; "" if nothing is.
func (s *stage) ending(e event) string {
	reported := func(k kind) bool {
		isIt := func(other event) bool { return other.Process == e.Process && other.Kind == k }
		return slices.ContainsFunc(s.history, isIt) || slices.ContainsFunc(s.merge.pending, isIt)
	}
	if reported(killed) {
		return "" // as intended
	}
	words := s.processes[e.Process].lastWords()
	switch {
	case e.Error == "", reported(failed):
		return words // worth showing even if it went well
	case words == "":
		return e.Error
	default:
		return e.Error + "\n" + words
	}
}

// tick does what is due by the clock.
func (s *stage) tick() {
	now := s.clock.now()
	due := func(t timed) bool { return t.at <= now }
	for _, t := range s.cues {
		if due(t) {
			t.do()
		}
	}
	s.cues = slices.DeleteFunc(s.cues, due)
	for _, e := range s.merge.due(now) {
		s.history = append(s.history, e)
		s.view.show(e)
		s.failed = s.failed || e.Kind == failed
		for _, scene := range s.scenes {
			if scene.lock == e.Lock && scene.react != nil {
				scene.react(s, e)
			}
		}
	}
	s.view.tick(now)
}

func (s *stage) begin(process string) {
	s.processes[process].tell(cue{Do: begin, Start: s.start})
}

func (s *stage) leave(process string) {
	s.processes[process].tell(cue{Do: leave})
}

func (s *stage) kill(process string) {
	p := s.processes[process]
	s.merge.add(event{Kind: killed, At: s.clock.now(), Process: process, Lock: p.part.Lock})
	p.kill()
}

func (s *stage) stop(node string) {
	for _, scene := range s.scenes {
		if slices.Contains(scene.nodes, node) {
			s.merge.add(event{Kind: died, At: s.clock.now(), Process: node, Lock: scene.lock})
		}
	}
	s.nodes[node].Close()
}

// after has do called once d has passed. do must not call after.
func (s *stage) after(d time.Duration, do func()) {
	s.cues = append(s.cues, timed{s.clock.now() + d, do})
}

// Reasons why the scenes did not come to an end. What happened until then is judged all the same.
var (
	errTooLong = errors.New("the scenes did not come to an end in time")
	errStopped = errors.New("the scenes were stopped, because a process failed")
)
