package demo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"holdfast/cmd/holdfast/internal/locks"
)

const (
	frame = 20 * ms // how often the stage looks at the clock
	// mergeDelay is how long an event waits for earlier ones of other processes: each has a pipe of
	// its own, so that what happened first may arrive last.
	mergeDelay = 100 * ms
)

// stage runs the processes of all scenes. Only the goroutines of its group run beside its own.
type stage struct {
	scenes []scene
	redis  rueidis.Client
	nodes  nodes
	story  *story // is told events in the order of time, except for late ones
	screen screen

	group     sync.WaitGroup
	events    chan event
	orders    chan string // of cues whose time has come
	processes map[string]*process
	clients   map[string]part // by the id of a client
	running   int
	origin    time.Time // of all times
	pending   []event   // that wait for earlier ones
	history   []event
	seen      map[string]int // events, by name and by kind
	cues      []cue          // to come
	stalls    stalls         // of this process, which may have the server in it
}

// process is one worker as the stage sees it.
type process struct {
	part  part
	cmd   *exec.Cmd
	stdin *json.Encoder // its errors are ignored: that it is gone is reported as its end
	over  bool          // it was killed, or has reported that it failed
}

// Reasons why the scenes did not come to an end. What happened until then is judged all the same.
var (
	errTooLong = errors.New("the scenes did not end in time")
	errStopped = errors.New("the scenes were stopped, because a process failed")
)

// play runs all scenes and returns what happened, ordered by time; with the cause if ctx ended, or
// errStopped if a process failed. No process is left when it returns.
func (s *stage) play(ctx context.Context) ([]event, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer s.group.Wait()
	defer cancel() // kills what still runs
	s.events, s.orders = make(chan event), make(chan string)
	s.processes, s.clients, s.seen = map[string]*process{}, map[string]part{}, map[string]int{}
	for _, scene := range s.scenes {
		s.cues = append(s.cues, scene.cues...)
		for _, p := range scene.cast {
			if err := s.launch(ctx, p); err != nil {
				return nil, fmt.Errorf("start process %s: %w", p.Process, err)
			}
		}
	}
	for len(s.clients) < len(s.processes) {
		select {
		case e := <-s.events:
			if e.Kind != ready {
				return nil, fmt.Errorf("process %s %s: %s", e.Process, e.Kind, e.Error)
			}
			s.clients[e.Client] = s.processes[e.Process].part
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	s.origin = time.Now()
	for _, p := range s.processes {
		_ = p.stdin.Encode(s.origin)
	}
	s.group.Go(func() { s.stalls.watch(ctx) })
	s.group.Go(func() { s.look(ctx) })
	err := s.follow(ctx)
	slices.SortStableFunc(s.history, byTime) // an event may have come late
	return s.history, err
}

func byTime(a, b event) int { return cmp.Compare(a.At, b.At) }

// launch starts a process, and a goroutine that reads what it reports. It is killed when ctx ends.
func (s *stage) launch(ctx context.Context, p part) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "worker")
	cmd.Stderr = &stderr
	cmd.WaitDelay = time.Second // for the pipes, after the process has ended
	stdin, err := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	err = errors.Join(err, err2)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	w := &process{part: p, cmd: cmd, stdin: json.NewEncoder(stdin)}
	_ = w.stdin.Encode(p)
	s.processes[p.Process] = w
	s.running++
	s.group.Go(func() {
		e := event{}
		for events := json.NewDecoder(stdout); events.Decode(&e) == nil; {
			send(ctx, s.events, e)
			e = event{}
		}
		e = event{Kind: ended, Process: p.Process, Lock: p.Lock}
		if err := cmd.Wait(); err != nil {
			e.Error = err.Error() + "\n"
		}
		e.Error = strings.TrimSpace(e.Error + stderr.String())
		send(ctx, s.events, e)
	})
	return nil
}

// send sends something to the goroutine of the stage, until ctx ends.
func send[T any](ctx context.Context, to chan<- T, what T) {
	select {
	case to <- what:
	case <-ctx.Done():
	}
}

// look shows the locks that are in Redis, and reports who is queued there. Those who ask later must
// come after them.
func (s *stage) look(ctx context.Context) {
	known := map[string]bool{} // owners that were queued
	for ctx.Err() == nil {
		var present []locks.Lock
		for _, scene := range s.scenes {
			for _, name := range scene.cast[0].Names {
				lock, _ := locks.Inspect(ctx, s.redis, name) // an error is a fault of the workers
				for _, w := range lock.Waiters {
					p, ok := s.clients[w.Client.ID]
					if ok && scene.queues && !known[w.Owner] {
						known[w.Owner] = true
						send(ctx, s.events, event{Kind: queued, At: time.Since(s.origin),
							Process: p.Process, Lock: p.Lock})
					}
				}
				if lock.Holding()+lock.Waiting() > 0 {
					lock.Name = name[strings.LastIndex(name, ":")+1:]
					present = append(present, lock)
				}
			}
		}
		s.screen.show(present)
		time.Sleep(50 * ms)
	}
}

// follow gives cues and collects events until all processes have ended.
func (s *stage) follow(ctx context.Context) error {
	ticker := time.NewTicker(frame)
	defer ticker.Stop()
	for s.running > 0 || len(s.pending) > 0 {
		select {
		case e := <-s.events:
			p := s.processes[e.Process]
			if e.Kind == ended {
				s.running--
				e.At = time.Since(s.origin)
				if p.over {
					e.Error = "" // it was killed, or has been reported
				}
			}
			p.over = p.over || e.Kind == failed
			s.pending = append(s.pending, e)
		case what := <-s.orders:
			s.obey(what)
		case <-ticker.C:
			s.tick(ctx)
			if s.seen[string(failed)] > 0 {
				return errStopped
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// tick tells the events that no earlier one will precede, and gives the cues that follow.
func (s *stage) tick(ctx context.Context) {
	slices.SortStableFunc(s.pending, byTime)
	for len(s.pending) > 0 && s.pending[0].At <= time.Since(s.origin)-mergeDelay {
		e := s.pending[0]
		s.pending = s.pending[1:]
		s.history = append(s.history, e)
		s.seen[e.name()]++
		s.seen[string(e.Kind)]++
		s.story.tell(e)
	}
	s.cues = slices.DeleteFunc(s.cues, func(c cue) bool {
		for name := range strings.SplitSeq(c.when, ", ") {
			words := append(strings.Fields(name), "1")
			if times, _ := strconv.Atoi(words[2]); s.seen[words[0]+" "+words[1]] < times {
				return false
			}
		}
		time.AfterFunc(c.after, func() { send(ctx, s.orders, c.what) })
		return true
	})
}

// obey does what a cue says: a verb, and whom it concerns.
func (s *stage) obey(what string) {
	words := strings.Fields(what)
	for _, name := range words[1:] {
		e := event{At: time.Since(s.origin), Process: name}
		switch words[0] {
		case "go":
			_ = s.processes[name].stdin.Encode("go")
			continue
		case "kill":
			p := s.processes[name]
			e.Kind, e.Lock, p.over = killed, p.part.Lock, true
			_ = p.cmd.Process.Kill()
		case "stop":
			e.Kind, e.Lock = died, s.nodes[name].lock
			s.nodes[name].Close()
		}
		s.pending = append(s.pending, e)
	}
}
