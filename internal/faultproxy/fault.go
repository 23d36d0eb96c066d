package faultproxy

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long Await waits, on a machine that may be busy.
const patience = 10 * time.Second

// Fault is something that happens to the next requests that contain a text. When several faults wait for the same request,
// the one that was there first has it. Its methods may be called by several goroutines.
type Fault struct {
	proxy   *Proxy
	pattern string
	does    deed
	reply   string // the error that the client is told
	left    int    // guarded by proxy.mu; how often it is still to happen

	mu      sync.Mutex
	done    int           // guarded by mu; how often it has happened
	changed chan struct{} // guarded by mu; closed at the next time
}

// deed is what a fault does to a request.
type deed int

const (
	cutting   deed = iota // executed, then cut off
	replacing             // executed, then answered with an error
	instead               // answered with an error, and not executed
)

// CutReply cuts connections between the execution of a request and its reply. It waits for replies to requests that contain
// pattern, also to those that were sent before. For each of the next n the connection is reset in place of the reply. The
// replies that were due before it have been received by then (other systems than Linux may lose the last of them), all others
// are lost.
//
// pattern is looked for in the words of a request with spaces between them, as in "SUBSCRIBE news"; case matters.
func (p *Proxy) CutReply(pattern string, n int) *Fault { return p.arm(pattern, n, cutting, "") }

// Answer answers the next n requests that contain pattern (see CutReply) with an error, such as [Loading], in the server's
// place: they are not executed. The answer keeps its place in the order of replies. The server does not know of it: a
// transaction (MULTI) that it happens in is executed without that command.
func (p *Proxy) Answer(pattern string, n int, reply string) *Fault {
	return p.arm(pattern, n, instead, reply)
}

// Replace lets requests that contain pattern (see CutReply) be executed, also those that were sent before, and passes an error
// on in place of each of the next n replies.
func (p *Proxy) Replace(pattern string, n int, reply string) *Fault {
	return p.arm(pattern, n, replacing, reply)
}

func (p *Proxy) arm(pattern string, n int, does deed, reply string) *Fault {
	f := &Fault{proxy: p, pattern: pattern, does: does, reply: reply, left: n, changed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > 0 {
		p.faults = append(p.faults, f)
		p.needFrames()
	}
	return f
}

// due returns a fault that does one of these to the exchange, and uses it up by one.
func (p *Proxy) due(e *exchange, deeds ...deed) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.faults {
		if !slices.Contains(deeds, f.does) || !strings.Contains(e.text, f.pattern) {
			continue
		}
		if f.left--; f.left == 0 {
			p.faults = slices.Delete(p.faults, i, i+1)
		}
		return f
	}
	return nil
}

// Done is how often it has happened so far. It counts before the client can notice: who has seen the fault is counted.
func (f *Fault) Done() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done
}

// Await waits until it has happened n times or more; tb fails when that takes longer than 10 s. A connection that was cut is
// reset by then.
func (f *Fault) Await(tb testing.TB, n int) {
	tb.Helper()
	late := time.After(patience)
	for {
		f.mu.Lock()
		done, changed := f.done, f.changed
		f.mu.Unlock()
		if done >= n {
			return
		}
		select {
		case <-changed:
		case <-late:
			require.FailNow(tb, "the fault has not happened", "%q: %d times instead of %d", f.pattern, done, n)
		}
	}
}

// End has it happen no more, however often it has happened.
func (f *Fault) End() {
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	f.proxy.faults = slices.DeleteFunc(f.proxy.faults, func(other *Fault) bool { return other == f })
}

func (f *Fault) count() { f.happen(func() {}) }

func (f *Fault) cut(l *link) { f.happen(l.reset) }

// happen counts what happens. Nobody learns the count before it has happened.
func (f *Fault) happen(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
	f.done++
	close(f.changed)
	f.changed = make(chan struct{})
}

// frame is the error as a reply, on one line whatever it says, as Redis does it.
func (f *Fault) frame() []byte {
	return []byte("-" + strings.NewReplacer("\r", " ", "\n", " ").Replace(f.reply) + "\r\n")
}
