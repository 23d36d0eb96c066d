package waitqueue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A model of what may happen to the waiters of one queue: a server that registers waiters and
// grants the lock, commands that are executed some time after they are sent, replies and messages
// that come at any time after that, or never. Time is a counter.

// modelServer is the server: who holds the lock, and who is registered.
type modelServer struct {
	now           int
	holder        string // "" is free
	since         int    // when its lease began
	registrations []modelRegistration
	ticket        Ticket // the last one issued
}

type modelRegistration struct {
	owner  string
	ticket Ticket
}

func (o *modelServer) tick() int {
	o.now++
	return o.now
}

func (o *modelServer) registrationOf(owner string) int {
	return slices.IndexFunc(o.registrations, func(p modelRegistration) bool {
		return p.owner == owner
	})
}

func (o *modelServer) remove(owner string) {
	o.registrations = slices.DeleteFunc(o.registrations, func(p modelRegistration) bool {
		return p.owner == owner
	})
}

func (o *modelServer) register(owner string) Ticket {
	if i := o.registrationOf(owner); i >= 0 {
		return o.registrations[i].ticket
	}
	o.ticket++
	o.registrations = append(o.registrations, modelRegistration{owner, o.ticket})
	return o.ticket
}

func (o *modelServer) grant(owner string) {
	o.holder, o.since = owner, o.tick()
}

// modelAsk is a request of a waiter.
type modelAsk struct {
	sent     int
	executed bool
	granted  bool
	ticket   Ticket
}

// modelRelease is a release that names a successor.
type modelRelease struct {
	offer    modelOffer
	of       string
	sent     int
	executed bool
	reply    Release
}

// modelWaiter is a waiter, and what the model must remember of it after it has left.
type modelWaiter struct {
	waiter  *Waiter[string, struct{}]
	owner   string
	ask     *modelAsk
	turns   bool   // it takes turns, and nothing of it is on the server
	decided bool   // it is about to ask
	holds   bool   // it left with the lock
	name    string // under which it holds the lock: its own, or that of the run
	since   int    // its lease began after this
	passed  bool   // it has passed the lock on
	left    bool
	cleaned bool // something was reported that may remain
	ended   int  // the begin of the last of its ended leases
}

// modelTurn is a turn that its waiter has not noticed yet.
type modelTurn struct {
	to   *modelWaiter
	name string
}

type (
	modelQueues = Queues[string, struct{}]
	modelOffer  = Offer[string, struct{}]
)

type modelQueue struct {
	queues   *modelQueues
	server   modelServer
	waiters  []*modelWaiter
	release  *modelRelease // one at a time: only a holder releases
	turn     *modelTurn    // one at a time: only a holder passes the lock on
	messages []Message     // on their way
}

func begin() (struct{}, bool) { return struct{}{}, true }

func allOf[T any](all []T, is func(T) bool) bool {
	return !slices.ContainsFunc(all, func(each T) bool { return !is(each) })
}

func modelTime(now int) time.Time { return time.Unix(int64(now), 0) }

func (m *modelQueue) waiting() (all []*modelWaiter) {
	for _, w := range m.waiters {
		if !w.left {
			all = append(all, w)
		}
	}
	return all
}

func (m *modelQueue) join(t *rapid.T) {
	if len(m.waiting()) == 3 {
		t.Skip()
	}
	w := &modelWaiter{owner: fmt.Sprint("client:", len(m.waiters))}
	w.waiter = m.queues.Join("order", w.owner, time.Second, begin)
	w.turns = rapid.IntRange(0, 3).Draw(t, "takes turns") > 0
	if w.turns {
		w.waiter.TakeTurns()
	}
	m.waiters = append(m.waiters, w)
}

// tries has a caller that does not wait get the free lock, or the lock of another client whose
// lease has just ended.
func (m *modelQueue) tries(t *rapid.T) {
	if h := m.server.holder; h != "" && !strings.HasPrefix(h, "other:") ||
		m.release != nil && m.release.of == h {
		t.Skip()
	}
	w := &modelWaiter{owner: fmt.Sprint("client:", len(m.waiters)), since: m.server.tick(),
		left: true, holds: true}
	w.name = w.owner
	m.server.grant(w.owner)
	m.waiters = append(m.waiters, w)
}

// head returns the waiter that asks, if it is awake.
func (m *modelQueue) head(t *rapid.T) *modelWaiter {
	all := m.waiting()
	if len(all) == 0 {
		t.Skip()
	}
	return all[0]
}

func (m *modelQueue) asks(t *rapid.T) {
	w := m.head(t)
	if w.ask != nil {
		t.Skip()
	}
	if !w.decided {
		g, granted := w.waiter.Turn()
		require.Equal(t, m.turn != nil && m.turn.to == w, granted)
		w.turns, w.decided = false, true
		if granted {
			m.takesTurn(t, w, g)
			return
		}
		if rapid.Bool().Draw(t, "something happens in between") {
			return
		}
	}
	require.True(t, w.waiter.Ask(true, true))
	w.ask, w.decided = &modelAsk{sent: m.server.tick()}, false
}

func (m *modelQueue) executeAsk(t *rapid.T) {
	w := m.head(t)
	if w.ask == nil || w.ask.executed {
		t.Skip()
	}
	w.ask.executed = true
	if o := &m.server; o.holder == "" || o.holder == w.owner {
		o.grant(w.owner)
		o.remove(w.owner)
		w.ask.granted = true
	} else {
		w.ask.ticket = o.register(w.owner)
	}
}

// hears ends a request, with a reply or without.
func (m *modelQueue) hears(t *rapid.T) {
	w := m.head(t)
	if w.ask == nil {
		t.Skip()
	}
	ask, replied := w.ask, w.ask.executed && rapid.IntRange(0, 4).Draw(t, "reply") > 0
	w.ask = nil
	if !replied {
		if !ask.executed && rapid.Bool().Draw(t, "executed all the same") {
			w.ask = ask // no command of the model is executed later, so none is retried
			m.executeAsk(t)
			w.ask = nil
		}
		ask.ticket, ask.granted = 0, false
	}
	g, given := w.waiter.Reply(ask.ticket, modelTime(ask.sent))
	require.Zero(t, g.Turn)
	switch {
	case ask.granted:
		m.keeps(t, w, ask.sent)
	case given:
		m.takes(t, w, g)
	}
}

// offers sends the release of the holder, with a successor if there is one.
func (m *modelQueue) offers(t *rapid.T) {
	knows := func(w *modelWaiter) bool { return w.owner != m.server.holder || w.holds }
	passes := m.turn != nil && m.turn.name == m.server.holder
	if m.release != nil || m.server.holder == "" || passes || !allOf(m.waiters, knows) {
		t.Skip()
	}
	var until Streak
	if rapid.Bool().Draw(t, "after a streak") {
		until.Here = mostHere
	}
	m.release = &modelRelease{offer: m.queues.Offer("order", until, true), of: m.server.holder,
		sent: m.server.tick()}
}

func (m *modelQueue) executeRelease(t *rapid.T) {
	r := m.release
	if r == nil || r.executed {
		t.Skip()
	}
	r.executed = true
	o := &m.server
	r.reply = Release{Outcome: ToNobody, Sent: modelTime(r.sent)}
	next, first, named := r.offer.Successor, r.offer.First, r.offer.Successor != nil
	if o.holder != r.of {
		if named && o.holder == next.Owner {
			r.reply.Outcome = ToSuccessor
		}
		return
	}
	r.reply.Outcome = ToAll
	o.holder = ""
	switch {
	case named && (first || len(o.registrations) == 0):
		o.remove(next.Owner)
		o.grant(next.Owner)
		r.reply.Outcome = ToSuccessor
	case len(o.registrations) > 0:
		if granted := m.passOn(); named && next.Owner != granted {
			r.reply.Outcome, r.reply.Ticket = SuccessorRegistered, o.register(next.Owner)
		}
	}
}

// passOn grants the lock to the oldest registration.
func (m *modelQueue) passOn() (owner string) {
	o := &m.server
	p := o.registrations[0]
	o.registrations = o.registrations[1:]
	o.grant(p.owner)
	if p.owner == "other:2" {
		return p.owner
	}
	m.messages = append(m.messages, Message{Owner: p.owner, Ticket: p.ticket})
	return p.owner
}

// settles ends a release, with a reply or without.
func (m *modelQueue) settles(t *rapid.T) {
	r := m.release
	if r == nil || !r.executed {
		t.Skip()
	}
	m.release = nil
	if rapid.IntRange(0, 4).Draw(t, "reply") == 0 {
		r.reply = Release{Outcome: Uncertain, Sent: modelTime(r.sent), Late: rapid.Bool().Draw(t, "late")}
	}
	if r.offer.Successor == nil {
		return
	}
	abandoned := r.offer.Settle(r.reply)
	for _, w := range m.waiters {
		if w.waiter != r.offer.Successor {
			continue
		}
		w.turns = w.turns && r.reply.Outcome < Uncertain
		if abandoned {
			require.False(t, w.holds, "a held lock is about to be released")
			m.cleansUp(w)
		}
	}
}

// passes has the holder pass the lock on without a command.
func (m *modelQueue) passes(t *rapid.T) {
	i := slices.IndexFunc(m.waiters, func(w *modelWaiter) bool {
		return w.holds && !w.passed && w.name == m.server.holder
	})
	if i < 0 {
		t.Skip()
	}
	h := m.waiters[i]
	heard := slices.ContainsFunc(m.messages, func(g Message) bool { return g.Owner == h.name })
	if heard || m.release != nil && m.release.of == h.name {
		t.Skip() // as rlock does
	}
	s := lasting(0)
	if rapid.IntRange(0, 9).Draw(t, "after a streak") == 0 {
		s.Here = mostHere
	}
	var to *modelWaiter
	if all := m.waiting(); len(all) > 0 && all[0].turns && s.Here == 0 && m.turn == nil &&
		(m.release == nil || m.release.offer.Successor != all[0].waiter) {
		to = all[0]
	}
	passed := m.queues.Pass("order", s, Turn{Owner: h.name, Until: modelTime(h.since)})
	require.Equal(t, to != nil, passed)
	if passed {
		h.passed, m.turn = true, &modelTurn{to, h.name}
	}
}

// takesTurn accepts a turn or declines it. It declines if the lease is over, which rlock knows from
// the clock.
func (m *modelQueue) takesTurn(t *rapid.T, w *modelWaiter, g Grant) {
	require.Equal(t, &modelTurn{w, g.Turn.Owner}, m.turn)
	m.turn = nil
	over := slices.ContainsFunc(m.waiters, func(first *modelWaiter) bool {
		return first.owner == g.Turn.Owner && g.Turn.Until.Unix() <= int64(first.ended)
	})
	if over || rapid.IntRange(0, 4).Draw(t, "accepts") == 0 {
		w.waiter.Decline()
		w.turns = false // it will ask
		m.cleansUpName(g.Turn.Owner)
		return
	}
	require.Equal(t, g.Turn.Owner, m.server.holder)
	m.leavesWith(t, w, g.Turn.Owner, int(g.Turn.Until.Unix()))
}

// elsewhere is what another client does: it acquires, waits, or releases; or the holder's lease
// ends.
func (m *modelQueue) elsewhere(t *rapid.T) {
	o := &m.server
	switch {
	case o.holder == "":
		o.grant("other:1")
		return
	case o.registrationOf("other:2") < 0 && o.holder != "other:2" && rapid.Bool().Draw(t, "waits"):
		o.register("other:2")
		return
	}
	if m.release != nil && o.holder == m.release.of {
		t.Skip()
	}
	for _, w := range m.waiters {
		if w.owner == o.holder {
			w.ended = o.since
		}
	}
	o.holder = ""
	if len(o.registrations) > 0 {
		m.passOn()
	}
}

// delivers lets one of the messages arrive.
func (m *modelQueue) delivers(t *rapid.T) {
	if len(m.messages) == 0 {
		t.Skip()
	}
	i := rapid.IntRange(0, len(m.messages)-1).Draw(t, "message")
	g := m.messages[i]
	m.messages = slices.Delete(m.messages, i, i+1)
	if m.queues.Deliver(g, func(name string) bool { return name == "order" }) {
		return
	}
	for _, w := range m.waiters {
		if w.owner == g.Owner && !w.holds { // as rlock finds out
			require.True(t, w.left, "a waiter's lock is about to be released")
			m.cleansUp(w)
		}
	}
}

// wakes has a waiter take the lock that it was granted.
func (m *modelQueue) wakes(t *rapid.T) {
	for _, w := range m.waiting() {
		if w.ask != nil {
			continue
		}
		if w.waiter.woken() != HasGrant {
			continue
		}
		if g := w.waiter.given; g.Turn.Owner != "" {
			m.takesTurn(t, w, g)
		} else {
			m.takes(t, w, g)
		}
		return
	}
	t.Skip()
}

// takes accepts a grant, if its lease is not over.
func (m *modelQueue) takes(t *rapid.T, w *modelWaiter, g Grant) {
	if g.Since.Unix() <= int64(w.ended) { // a later lease is over, which rlock knows from the clock
		m.leaves(t, w)
		return
	}
	require.Equal(t, w.owner, m.server.holder)
	require.Less(t, g.Since.Unix(), int64(m.server.since), "its lease began before that")
	m.keeps(t, w, int(g.Since.Unix()))
}

// keeps has a waiter leave with the lock, whose lease began after since.
func (m *modelQueue) keeps(t *rapid.T, w *modelWaiter, since int) {
	if since > w.ended {
		require.Equal(t, w.owner, m.server.holder)
	}
	m.leavesWith(t, w, w.owner, since)
}

func (m *modelQueue) leavesWith(t *rapid.T, w *modelWaiter, name string, since int) {
	remains, _ := w.waiter.Leave(true, false)
	require.Equal(t, Nothing, remains)
	require.Zero(t, w.waiter.UnusedTurn())
	w.left, w.holds, w.name, w.since = true, true, name, since
}

// givesUp has any waiter leave without it.
func (m *modelQueue) givesUp(t *rapid.T) {
	all := m.waiting()
	if len(all) == 0 {
		t.Skip()
	}
	w := rapid.SampledFrom(all).Draw(t, "waiter")
	if w.ask != nil {
		t.Skip() // it leaves after the reply
	}
	m.leaves(t, w)
}

func (m *modelQueue) leaves(t *rapid.T, w *modelWaiter) {
	w.left = true
	if remains, _ := w.waiter.Leave(false, true); remains != Nothing {
		m.cleansUp(w)
	}
	turn := w.waiter.UnusedTurn()
	if m.turn == nil || m.turn.to != w {
		require.Zero(t, turn)
		return
	}
	require.Equal(t, m.turn.name, turn.Owner)
	m.turn = nil
	m.cleansUpName(turn.Owner)
}

// cleansUp withdraws what a waiter that left may have, in the model at once.
func (m *modelQueue) cleansUp(w *modelWaiter) {
	w.cleaned = true
	m.cleansUpName(w.owner)
}

func (m *modelQueue) cleansUpName(name string) {
	o := &m.server
	o.remove(name)
	if o.holder == name {
		o.holder = ""
		if len(o.registrations) > 0 {
			m.passOn()
		}
	}
}

// uses reports whether somebody holds the lock under a name, or is about to.
func (m *modelQueue) uses(name string) bool {
	return m.turn != nil && m.turn.name == name ||
		slices.ContainsFunc(m.waiters, func(w *modelWaiter) bool {
			return w.holds && !w.passed && w.name == name
		})
}

// check asserts what is true at any time.
func (m *modelQueue) check(t *rapid.T) {
	underWay := func(w *modelWaiter) bool {
		if m.release != nil && w.waiter != nil && m.release.offer.Successor == w.waiter {
			return true
		}
		return slices.ContainsFunc(m.messages, func(g Message) bool { return g.Owner == w.owner })
	}
	for _, w := range m.waiters {
		if !w.left || underWay(w) {
			continue
		}
		require.Equal(t, -1, m.server.registrationOf(w.owner),
			"%s has left, and its registration remains", w.owner)
		require.True(t, m.server.holder != w.owner || m.uses(w.owner),
			"%s has left, and has the lock for good", w.owner)
	}
	if m.turn != nil {
		require.Contains(t, m.waiting(), m.turn.to, "a turn is lost")
		require.Equal(t, Granted, m.turn.to.waiter.state)
	}
	m.queues.mu.Lock()
	defer m.queues.mu.Unlock()
	require.LessOrEqual(t, len(m.queues.registered), len(m.waiting()))
	if len(m.waiting()) == 0 {
		require.Empty(t, m.queues.byName)
	}
}

// timePasses is possible in every state. rapid fails when it draws no possible action for long.
func (m *modelQueue) timePasses(*rapid.T) { m.server.tick() }

// program does anything that may happen, in some order, and checks what is true at any time.
func program(t *rapid.T) {
	m := &modelQueue{queues: New[string, struct{}]()}
	m.server.grant("other:1")
	t.Repeat(map[string]func(*rapid.T){
		"":          m.check,
		"join":      m.join,
		"try":       m.tries,
		"ask":       m.asks,
		"ask ex":    m.executeAsk,
		"hear":      m.hears,
		"offer":     m.offers,
		"offer ex":  m.executeRelease,
		"settle":    m.settles,
		"pass":      m.passes,
		"elsewhere": m.elsewhere,
		"deliver":   m.delivers,
		"wake":      m.wakes,
		"give up":   m.givesUp,
		"time":      m.timePasses,
	})
}

// In whatever order things happen, a waiter holds the lock only if the server says so, and no
// longer. And nothing remains of those that left without it that is not cleaned up.
func TestModelOfHandOvers(t *testing.T) {
	rapid.Check(t, program)
}

// The model uses each transition: it notices when one is left out.
func TestModelMissesEachTransitionThatIsLeftOut(t *testing.T) {
	all := transitions
	defer func() { transitions = all }()
	for state := range states {
		for e := range events {
			if all[state][e] == 0 {
				continue
			}
			transitions[state][e] = 0
			require.True(t, fails(2000), "nothing misses %v in state %v", e, state)
			transitions[state][e] = all[state][e]
		}
	}
	require.False(t, fails(100))
}

// fails reports whether one of that many programs meets a transition that does not exist.
func fails(programs int) (failed bool) {
	run := rapid.Custom(func(t *rapid.T) int {
		defer func() {
			if text, ok := recover().(string); ok &&
				strings.HasPrefix(text, "waitqueue.State: no ") {
				failed = true
			}
		}()
		program(t)
		return 0
	})
	for seed := 0; seed < programs && !failed; seed++ {
		run.Example(seed)
	}
	return failed
}
