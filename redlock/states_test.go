package redlock

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unique"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/internal/hooks"
	"holdfast/internal/owner"
	"holdfast/internal/session"
	"holdfast/internal/transition"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// A model of acquisitions over three nodes: each request is answered in every way, in time, late or
// not at all, parts are lost, clients close, and levels come and go.

// answer is how a node answers a command.
type answer int

const (
	yes        answer = iota
	no                // it was not granted, or is not held
	lostBefore        // no reply, and the command was not carried out
	lostAfter         // no reply, and the command was carried out
	refuses           // it never succeeds
	slowly            // yes, after all time-outs
	slowlyNo          // no, after all time-outs
	answers
)

// modelPause is longer than all time-outs.
const modelPause = time.Minute

// modelNode is a node, and all that is known of it.
type modelNode struct {
	hooks.Node
	name    string
	pool    *wait.Pool
	closing chan struct{}
	owners  atomic.Int32

	mu      sync.Mutex
	answers []answer        // to the next commands; then yes
	held    map[string]bool // owners that it holds the lock for
	kept    map[string]bool // owners whose release it refused, or that left the lock
	parts   []*modelPart    // in the watchdog of its client
}

// modelPart is a part in the watchdog.
type modelPart struct {
	part     hooks.Part
	ended    atomic.Bool
	deadline atomic.Pointer[time.Time]
}

func (p *modelPart) end(reason error) {
	if !p.ended.Swap(true) {
		p.part.Ended(reason)
	}
}

func (p *modelPart) Deadline() time.Time         { return *p.deadline.Load() }
func (p *modelPart) Extended(deadline time.Time) { p.deadline.Store(&deadline) }
func (p *modelPart) SetRenew(bool)               {}
func (p *modelPart) MayRenew() bool              { return true }
func (p *modelPart) Expiry() error               { return watchdog.ErrExpired }
func (p *modelPart) MayLast(time.Duration)       {}
func (p *modelPart) Drop()                       { p.end(rlock.ErrClosed) }

func newModelNode(i int) *modelNode {
	n := &modelNode{name: "node" + strconv.Itoa(i), closing: make(chan struct{}),
		held: map[string]bool{}, kept: map[string]bool{}}
	n.pool = wait.NewPool(func(f func()) bool {
		if n.closed() {
			return false
		}
		go f()
		return true
	})
	return n
}

func (n *modelNode) closed() bool {
	select {
	case <-n.closing:
		return true
	default:
		return false
	}
}

func (n *modelNode) Name() string                  { return "order" }
func (n *modelNode) Server() string                { return n.name }
func (n *modelNode) WatchdogLease() time.Duration  { return 1000 * time.Hour }
func (n *modelNode) CommandTimeout() time.Duration { return 10 * time.Second }
func (n *modelNode) Warn(string, ...any)           {}
func (n *modelNode) Failed(string, error)          {}
func (n *modelNode) Pool() *wait.Pool              { return n.pool }
func (n *modelNode) Closing() <-chan struct{}      { return n.closing }
func (n *modelNode) Permanent(err error) bool      { return lua.ClassOf(err) == lua.ClassPermanent }

func (n *modelNode) NewOwner() string { return fmt.Sprint(n.name, ":", n.owners.Add(1)) }

// command is one that carries out f, and returns what f does, as the next answer wants it.
func (n *modelNode) command(f func(yes bool) bool) (bool, error) {
	n.mu.Lock()
	how := yes
	if len(n.answers) > 0 {
		how, n.answers = n.answers[0], n.answers[1:]
	}
	n.mu.Unlock()
	if how == slowly || how == slowlyNo {
		time.Sleep(modelPause)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch how {
	case lostBefore:
		return false, &lua.Error{Class: lua.ClassUnknown}
	case lostAfter:
		f(true)
		return false, &lua.Error{Class: lua.ClassUnknown}
	case refuses:
		return false, &lua.Error{Class: lua.ClassPermanent}
	default:
		return f(how == yes || how == slowly), nil
	}
}

func (n *modelNode) Acquire(as string, _ time.Duration, _ lua.Delay) (lua.Vote, error) {
	granted, err := n.command(func(yes bool) bool {
		if yes {
			n.held[as] = true
		}
		return yes
	})
	v := lua.Vote{Granted: granted}
	if !granted && err == nil {
		v.Holder = &lua.Holder{Owner: "other:1"}
	}
	return v, err
}

func (n *modelNode) Extend(as string, _ int, _ time.Duration) (bool, error) {
	return n.command(func(yes bool) bool {
		if !yes {
			delete(n.held, as)
		}
		return n.held[as]
	})
}

func (n *modelNode) Held(by lua.Holder) error { return &rlock.HeldError{Owner: by.Owner} }

func (n *modelNode) Release(as string) (lua.Released, error) {
	held, err := n.command(func(yes bool) bool {
		held := n.held[as] && yes
		delete(n.held, as)
		return held
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept[as] = n.kept[as] || lua.ClassOf(err) == lua.ClassPermanent
	return lua.Released{Held: held}, err
}

func (n *modelNode) CleanUp(as string, _ time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.held, as)
}

func (n *modelNode) CallSite() []uintptr { return nil }

func (n *modelNode) Hold(_ string, _ owner.Token, _ []uintptr, deadline time.Time, p hooks.Part,
) hooks.NodeAcquisition {
	if n.closed() {
		return nil
	}
	mp := &modelPart{part: p}
	mp.Extended(deadline)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.parts = append(n.parts, mp)
	return mp
}

// lose ends the parts in the watchdog.
func (n *modelNode) lose(reason error) {
	n.mu.Lock()
	parts := n.parts
	n.parts = nil
	if reason == watchdog.ErrGone { //nolint:errorlint // it is that value
		clear(n.held)
	}
	n.mu.Unlock()
	for _, p := range parts {
		p.end(reason)
	}
}

// modelLock is a lock over three nodes, and what its owner has.
type modelLock struct {
	nodes [3]*modelNode
	lock  *Lock
	owner context.Context
	holds []*rlock.Hold
}

var modelLocks atomic.Int64

func newModelLock() *modelLock {
	m := &modelLock{owner: rlock.WithOwner(context.Background())}
	id := unique.Make(fmt.Sprint("model", modelLocks.Add(1)))
	l := &Lock{name: "order", quorum: 2, spare: 1, identity: id}
	for i := range m.nodes {
		m.nodes[i] = newModelNode(i)
		l.nodes = append(l.nodes, m.nodes[i])
	}
	m.lock = l.WithOptions(Options{FsyncAlways: true, NodeTimeout: time.Second})
	return m
}

// draw draws the answers to the next commands. Most programs must get somewhere: half are yes.
func (m *modelLock) draw(rt *rapid.T) {
	for _, n := range m.nodes {
		drawn := make([]answer, 4)
		for i := range drawn {
			if rapid.Bool().Draw(rt, "other than yes") {
				drawn[i] = answer(rapid.IntRange(0, int(answers)-1).Draw(rt, "answer"))
			}
		}
		n.mu.Lock()
		n.answers = drawn
		n.mu.Unlock()
	}
}

// try tries to acquire the lock, or another level.
func (m *modelLock) try() {
	if h, err := m.lock.TryLock(m.owner, rlock.NoWait, 100*time.Hour); err == nil {
		m.holds = append(m.holds, h)
	}
}

// unlock unlocks the last level.
func (m *modelLock) unlock() {
	last := len(m.holds) - 1
	_ = m.holds[last].Unlock(m.owner) // any outcome may follow the answers drawn
	m.holds = m.holds[:last]
}

// leave leaves the last level.
func (m *modelLock) leave() {
	last := len(m.holds) - 1
	h := m.holds[last]
	m.holds = m.holds[:last]
	nested := slices.ContainsFunc(m.holds, func(o *rlock.Hold) bool { return o.Owner() == h.Owner() })
	for _, n := range m.nodes {
		n.mu.Lock()
		for as := range n.held {
			n.kept[as] = n.kept[as] || !nested
		}
		n.mu.Unlock()
	}
	h.Leave()
}

// wrong compares what the nodes have with what the owner has, when nothing is under way any more.
// It returns what is wrong; "" if nothing is.
func (m *modelLock) wrong() string {
	time.Sleep(10 * modelPause)
	valid, held := slices.ContainsFunc(m.holds, (*rlock.Hold).Valid), 0
	for _, n := range m.nodes {
		n.mu.Lock()
		defer n.mu.Unlock()
		for as := range n.held {
			held++
			if !valid && !n.closed() && !n.kept[as] {
				return fmt.Sprintf("nothing is held any more, but %s by %s", n.name, as)
			}
		}
	}
	if valid && held < m.lock.quorum {
		return fmt.Sprintf("the hold is valid, and held on %d nodes", held)
	}
	return ""
}

// program does what rt draws, until something is wrong, which is then in bug.
func program(rt *rapid.T, bug *atomic.Pointer[string]) {
	m := newModelLock()
	check := func() {
		if wrong := m.wrong(); wrong != "" {
			bug.CompareAndSwap(nil, &wrong)
		}
	}
	node := func(rt *rapid.T) *modelNode { return m.nodes[rapid.IntRange(0, 2).Draw(rt, "node")] }
	rt.Repeat(map[string]func(*rapid.T){
		"try": func(rt *rapid.T) {
			if len(m.holds) == 3 {
				rt.Skip()
			}
			m.draw(rt)
			m.try()
		},
		"extend": func(rt *rapid.T) {
			if len(m.holds) == 0 {
				rt.Skip()
			}
			m.draw(rt)
			_ = m.holds[0].Extend(m.owner, 200*time.Hour)
		},
		"unlock": func(rt *rapid.T) {
			if len(m.holds) == 0 {
				rt.Skip()
			}
			m.draw(rt)
			m.unlock()
		},
		"leave": func(rt *rapid.T) {
			if len(m.holds) == 0 {
				rt.Skip()
			}
			// What a node has just granted is left as well, so the model has to see it.
			synctest.Wait()
			m.leave()
		},
		"lose": func(rt *rapid.T) {
			// What the node has just granted is in its watchdog, too.
			synctest.Wait()
			reasons := []error{watchdog.ErrGone, watchdog.ErrExpired}
			node(rt).lose(rapid.SampledFrom(reasons).Draw(rt, "reason"))
		},
		"close": func(rt *rapid.T) {
			n := node(rt)
			if n.closed() || rapid.IntRange(0, 3).Draw(rt, "seldom") > 0 {
				rt.Skip()
			}
			close(n.closing)
			if rapid.Bool().Draw(rt, "its parts have ended, too") {
				n.lose(rlock.ErrClosed)
			}
		},
		"check": func(*rapid.T) { check() },
	})
	for len(m.holds) > 0 {
		m.unlock()
	}
	check()
}

// runPrograms runs so many programs, each of which does whatever may happen to a lock in some
// order. It returns what was wrong first, such as a transition that does not exist; "" if nothing
// was.
func runPrograms(t *testing.T, programs int) string {
	var bug atomic.Pointer[string]
	before, others := transition.Bug, sessions
	transition.Bug = func(what string) { bug.CompareAndSwap(nil, &what) }
	sessions = session.New[sessionKey, *acquisition]() // a bug may leave something in use
	defer func() { transition.Bug, sessions = before, others }()
	synctest.Test(t, func(*testing.T) {
		all := rapid.Custom(func(rt *rapid.T) int {
			program(rt, &bug)
			return 0
		})
		for seed := 0; seed < programs && bug.Load() == nil; seed++ {
			all.Example(seed)
		}
	})
	if bug.Load() == nil {
		return ""
	}
	return *bug.Load()
}

func TestModelOfAcquisitionsAndTheirParts(t *testing.T) { require.Empty(t, runPrograms(t, 2000)) }

// The model walks each transition: it finds out when one is left out.
func TestModelOfAcquisitionsMissesEachTransitionThatIsLeftOut(t *testing.T) {
	missesEach(t, phases)
	missesEach(t, states)
}

func missesEach[S ~string](t *testing.T, table map[S][]S) {
	for from, all := range table {
		for i, next := range all {
			table[from] = slices.Delete(slices.Clone(all), i, i+1)
			bug := runPrograms(t, 1000)
			t.Logf("without %v after %v: %s", next, from, bug)
			require.NotEmpty(t, bug, "nobody misses %v after %v", next, from)
		}
		table[from] = all
	}
}

// laterNode replies to nested locks after delays.
type laterNode struct {
	*modelNode
	delays chan time.Duration
}

func (n laterNode) Extend(as string, levels int, lease time.Duration) (bool, error) {
	time.Sleep(<-n.delays)
	return n.modelNode.Extend(as, levels, lease)
}

// The second level is confirmed by two nodes. The first node's reply to it comes after its reply to
// the third level, while that one still waits for another node.
func TestLateReplyToALevelDoesNotUncountTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModelLock()
		const later, last = 600 * time.Millisecond, 700 * time.Millisecond
		for i, delays := range [][]time.Duration{{later, 0}, {0, last}, {0, 0}} {
			n := laterNode{m.nodes[i], make(chan time.Duration, len(delays))}
			for _, d := range delays {
				n.delays <- d
			}
			m.lock.nodes[i] = n
		}
		m.nodes[2].answers = []answer{yes, yes, lostBefore}
		for range 3 {
			hold, err := m.lock.TryLock(m.owner, rlock.NoWait, time.Hour)
			require.NoError(t, err)
			m.holds = append(m.holds, hold)
			synctest.Wait() // the calls take their delays in the order of the levels
		}
		for range m.holds {
			m.unlock()
		}
	})
}

// A part is lost after its node has replied to Extend, and another node has not replied at all. The
// node that is left is no quorum, so Extend must ask again.
func TestExtendDoesNotCountAPartThatWasLostSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModelLock()
		for i, delay := range []time.Duration{0, 600 * time.Millisecond, 700 * time.Millisecond} {
			n := laterNode{m.nodes[i], make(chan time.Duration, 1)}
			n.delays <- delay
			close(n.delays) // no delay from then on
			m.lock.nodes[i] = n
		}
		m.nodes[2].answers = []answer{yes, lostBefore}
		hold, err := m.lock.TryLock(m.owner, rlock.NoWait, time.Hour)
		require.NoError(t, err)
		m.holds = append(m.holds, hold)
		synctest.Wait()
		extended := make(chan error, 1)
		go func() { extended <- hold.Extend(m.owner, 10*time.Hour) }()
		synctest.Wait()
		m.nodes[0].lose(watchdog.ErrGone)
		require.NoError(t, <-extended)
		require.Greater(t, time.Until(hold.Deadline()), 9*time.Hour)
		m.unlock()
	})
}
