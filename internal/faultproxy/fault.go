package faultproxy

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// timeout is how long Wait waits, on a machine that may be busy.
const timeout = 10 * time.Second

// Fault is something that happens to the next requests that contain a text. If several faults match
// a request, the oldest one happens. Its methods are safe for concurrent use.
type Fault struct {
	proxy   *Proxy
	pattern string
	does    action
	reply   []byte // what the client gets
	left    int    // guarded by proxy.mu; how often it will still happen

	mu      sync.Mutex
	done    int           // guarded by mu; how often it has happened
	changed chan struct{} // guarded by mu; closed at the next time
}

// action is what a fault does to a request.
type action int

const (
	cutting   action = iota // executed, then cut off
	replacing               // executed, but the reply is an error
	instead                 // not executed, and the reply is another
)

// CutReply cuts connections between the execution of a request and its reply. It waits for replies
// to requests that contain pattern, also to those sent before. For each of the next n the
// connection is reset in place of the reply. Replies that were due before have been received by
// then (systems other than Linux may lose the last of them); all others are lost.
//
// pattern is looked for in the words of a request with spaces between them, as in "SUBSCRIBE news";
// case matters.
func (p *Proxy) CutReply(pattern string, n int) *Fault { return p.arm(pattern, n, cutting, nil) }

// Reply replies to the next n requests that contain pattern (see CutReply) with an error, such as
// [Loading], in the server's place: they are not executed. The error keeps its place in the order
// of replies. The server does not know of it: a transaction (MULTI) is executed without that
// command.
func (p *Proxy) Reply(pattern string, n int, reply string) *Fault {
	return p.arm(pattern, n, instead, errorFrame(reply))
}

// Answer is Reply for a reply that is no error: a string if there is one, else an array of strings.
func (p *Proxy) Answer(pattern string, n int, reply ...string) *Fault {
	var frame strings.Builder
	if len(reply) != 1 {
		fmt.Fprintf(&frame, "*%d\r\n", len(reply))
	}
	for _, text := range reply {
		fmt.Fprintf(&frame, "$%d\r\n%s\r\n", len(text), text)
	}
	return p.arm(pattern, n, instead, []byte(frame.String()))
}

// Replace lets requests that contain pattern (see CutReply) be executed, also those sent before,
// and passes an error on in place of each of the next n replies.
func (p *Proxy) Replace(pattern string, n int, reply string) *Fault {
	return p.arm(pattern, n, replacing, errorFrame(reply))
}

func (p *Proxy) arm(pattern string, n int, does action, reply []byte) *Fault {
	f := &Fault{proxy: p, pattern: pattern, does: does, reply: reply, left: n,
		changed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > 0 {
		p.faults = append(p.faults, f)
		p.needFrames()
	}
	return f
}

// due returns a fault that does one of these to the exchange, and uses it up once.
func (p *Proxy) due(e *exchange, actions ...action) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.faults {
		if !slices.Contains(actions, f.does) || !strings.Contains(e.text, f.pattern) {
			continue
		}
		f.left--
		if f.left == 0 {
			p.faults = slices.Delete(p.faults, i, i+1)
		}
		return f
	}
	return nil
}

// Done returns how often the fault has happened. It counts before a client can notice.
func (f *Fault) Done() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done
}

// Wait waits until the fault has happened n times or more; tb fails when that takes longer than 10
// s. By then a connection that was cut is reset.
func (f *Fault) Wait(tb testing.TB, n int) {
	tb.Helper()
	late := time.After(timeout)
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
			require.FailNow(tb, "the fault has not happened", "%q: %d times instead of %d",
				f.pattern, done, n)
		}
	}
}

// End ends the fault, however often it has happened.
func (f *Fault) End() {
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	f.proxy.faults = slices.DeleteFunc(f.proxy.faults, func(other *Fault) bool {
		return other == f
	})
}

func (f *Fault) count() { f.happen(func() {}) }

func (f *Fault) cut(l *link) { f.happen(l.reset) }

// happen makes the fault happen, and counts it. The count is visible only afterwards.
func (f *Fault) happen(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
	f.done++
	close(f.changed)
	f.changed = make(chan struct{})
}

// errorFrame returns an error as a reply, on one line whatever it says, as Redis does.
func errorFrame(text string) []byte {
	return []byte("-" + strings.NewReplacer("\r", " ", "\n", " ").Replace(text) + "\r\n")
}
