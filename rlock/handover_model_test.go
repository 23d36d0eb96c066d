package rlock

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/lua"
)

// A model of what may become of the waiters of one line: a server that gives places and gives the lock away, commands that are
// executed some time after they are sent, answers and messages that come at any time after that, or never. Time is a
// counter.

// modelOffice is the server: who has the lock, and who has a place.
type modelOffice struct {
	now    int
	holder string // "" is free
	since  int    // when its lease began
	places []modelPlace
	ticket lua.Ticket // the last one
}

type modelPlace struct {
	owner  string
	ticket lua.Ticket
}

func (o *modelOffice) tick() int {
	o.now++
	return o.now
}

func (o *modelOffice) placeOf(owner string) int {
	return slices.IndexFunc(o.places, func(p modelPlace) bool { return p.owner == owner })
}

func (o *modelOffice) remove(owner string) {
	o.places = slices.DeleteFunc(o.places, func(p modelPlace) bool { return p.owner == owner })
}

func (o *modelOffice) enlist(owner string) lua.Ticket {
	if i := o.placeOf(owner); i >= 0 {
		return o.places[i].ticket
	}
	o.ticket++
	o.places = append(o.places, modelPlace{owner, o.ticket})
	return o.ticket
}

func (o *modelOffice) grant(owner string) {
	o.holder, o.since = owner, o.tick()
}

// modelAsk is a waiter's question.
type modelAsk struct {
	sent     int
	executed bool
	granted  bool
	ticket   lua.Ticket
}

// modelRelease is a release that names an heir.
type modelRelease struct {
	offer    offer
	of       string
	sent     int
	executed bool
	reply    lua.Released
}

// modelWaiter is a waiter, until it leaves, and what the model has to remember of it then.
type modelWaiter struct {
	spot    *spot
	owner   string
	ask     *modelAsk
	holds   bool // it left with the lock
	left    bool
	cleaned bool // somebody has been told that something may remain
	ended   int  // when the last of its leases began that has ended
}

type modelLine struct {
	lines    *lines
	office   modelOffice
	waiters  []*modelWaiter
	release  *modelRelease // one at a time: only a holder releases
	messages []lua.Grant   // under way
}

var modelCall = call{line: lineName{"lock", "order"}, places: true}

func allOf[T any](all []T, is func(T) bool) bool {
	return !slices.ContainsFunc(all, func(each T) bool { return !is(each) })
}

func modelTime(now int) time.Time { return time.Unix(int64(now), 0) }

func (m *modelLine) waiting() (all []*modelWaiter) {
	for _, w := range m.waiters {
		if !w.left {
			all = append(all, w)
		}
	}
	return all
}

func (m *modelLine) join(t *rapid.T) {
	if len(m.waiting()) == 3 {
		t.Skip()
	}
	w := &modelWaiter{owner: fmt.Sprint("client:", len(m.waiters))}
	w.spot = m.lines.join(modelCall, heir{owner: w.owner, lease: time.Second}, false)
	m.waiters = append(m.waiters, w)
}

// head is the waiter that asks, if it is awake.
func (m *modelLine) head(t *rapid.T) *modelWaiter {
	all := m.waiting()
	if len(all) == 0 {
		t.Skip()
	}
	return all[0]
}

func (m *modelLine) asks(t *rapid.T) {
	w := m.head(t)
	if w.ask != nil {
		t.Skip()
	}
	had := w.spot.place
	require.Equal(t, had, w.spot.asks(), "without a subscription nobody asks for a place who has none")
	// What asks does with one.
	m.lines.mu.Lock()
	w.spot.place, m.lines.enlisted[w.owner] = true, w.spot
	m.lines.mu.Unlock()
	w.ask = &modelAsk{sent: m.office.tick()}
}

func (m *modelLine) executeAsk(t *rapid.T) {
	w := m.head(t)
	if w.ask == nil || w.ask.executed {
		t.Skip()
	}
	w.ask.executed = true
	if o := &m.office; o.holder == "" || o.holder == w.owner {
		o.grant(w.owner)
		o.remove(w.owner)
		w.ask.granted = true
	} else {
		w.ask.ticket = o.enlist(w.owner)
	}
}

// hears is the end of a question: with its answer, or without.
func (m *modelLine) hears(t *rapid.T) {
	w := m.head(t)
	if w.ask == nil {
		t.Skip()
	}
	ask, answered := w.ask, w.ask.executed && rapid.IntRange(0, 4).Draw(t, "answer") > 0
	w.ask = nil
	if !answered {
		if !ask.executed && rapid.Bool().Draw(t, "executed all the same") {
			w.ask = ask // the model has no commands that are executed later: that is what a repetition is for
			m.executeAsk(t)
			w.ask = nil
		}
		ask.ticket, ask.granted = 0, false
	}
	g, given := w.spot.hears(ask.ticket, modelTime(ask.sent))
	switch {
	case ask.granted:
		m.keeps(t, w, ask.sent)
	case given:
		m.takes(t, w, g)
	}
}

// offers sends the release of the holder, with an heir.
func (m *modelLine) offers(t *rapid.T) {
	knows := func(w *modelWaiter) bool { return w.owner != m.office.holder || w.holds }
	if m.release != nil || m.office.holder == "" || !allOf(m.waiters, knows) {
		t.Skip()
	}
	var until journey
	if rapid.Bool().Draw(t, "after a run") {
		until.run.length = longestRun
	}
	m.release = &modelRelease{offer: m.lines.offer(modelCall.line, until), of: m.office.holder, sent: m.office.tick()}
}

func (m *modelLine) executeRelease(t *rapid.T) {
	r := m.release
	if r == nil || r.executed {
		t.Skip()
	}
	r.executed = true
	o := &m.office
	next := r.offer.heir()
	if o.holder != r.of {
		r.reply = lua.Released{}
		if next.owner != "" && o.holder == next.owner {
			r.reply = lua.Released{Held: true, To: lua.Successor}
		}
		return
	}
	r.reply = lua.Released{Held: true}
	o.holder = ""
	switch {
	case next.owner != "" && (next.first || len(o.places) == 0):
		o.remove(next.owner)
		o.grant(next.owner)
		r.reply.To = lua.Successor
	case len(o.places) > 0:
		first := m.passOn()
		r.reply.To = lua.Other
		if next.owner != "" && next.owner != first {
			r.reply.Ticket = o.enlist(next.owner)
		}
	}
}

// passOn gives the lock to the oldest place.
func (m *modelLine) passOn() (owner string) {
	o := &m.office
	p := o.places[0]
	o.places = o.places[1:]
	o.grant(p.owner)
	if p.owner == "other:2" {
		return p.owner
	}
	m.messages = append(m.messages, lua.Grant{Lock: "order", Owner: p.owner, Ticket: p.ticket})
	return p.owner
}

// settles is the end of a release: with its answer, or without.
func (m *modelLine) settles(t *rapid.T) {
	r := m.release
	if r == nil || !r.executed {
		t.Skip()
	}
	m.release = nil
	var err error
	if rapid.IntRange(0, 4).Draw(t, "answer") == 0 {
		r.reply, err = lua.Released{}, &lua.Error{Class: lua.Unknown}
	}
	if r.offer.settle(modelTime(r.sent), r.reply, err) {
		for _, w := range m.waiters {
			if w.spot == r.offer.spot {
				require.False(t, w.holds, "what somebody holds is about to be released")
				m.cleansUp(w)
			}
		}
	}
}

// elsewhere is what another client does: it acquires, waits, or releases; or the lease of whoever has the lock ends.
func (m *modelLine) elsewhere(t *rapid.T) {
	o := &m.office
	switch {
	case o.holder == "":
		o.grant("other:1")
		return
	case o.placeOf("other:2") < 0 && o.holder != "other:2" && rapid.Bool().Draw(t, "waits"):
		o.enlist("other:2")
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
	if o.holder = ""; len(o.places) > 0 {
		m.passOn()
	}
}

// delivers has one of the messages come.
func (m *modelLine) delivers(t *rapid.T) {
	if len(m.messages) == 0 {
		t.Skip()
	}
	i := rapid.IntRange(0, len(m.messages)-1).Draw(t, "message")
	g := m.messages[i]
	m.messages = slices.Delete(m.messages, i, i+1)
	if m.lines.gift(g) {
		return
	}
	for _, w := range m.waiters {
		if w.owner == g.Owner && !w.holds { // as Client.given finds out
			require.True(t, w.left, "a waiter's lock is about to be released")
			m.cleansUp(w)
		}
	}
}

// wakes has a waiter take the lock that it was given.
func (m *modelLine) wakes(t *rapid.T) {
	for _, w := range m.waiting() {
		if w.ask != nil {
			continue
		}
		select {
		case g := <-w.spot.gifts:
			m.takes(t, w, g)
			return
		default:
		}
	}
	t.Skip()
}

// takes accepts a gift, if its lease is not over.
func (m *modelLine) takes(t *rapid.T, w *modelWaiter, g gift) {
	if g.since.Unix() <= int64(w.ended) { // a lease is over that has begun after that, which the real one reads off the clock
		m.leaves(w)
		return
	}
	require.Equal(t, w.owner, m.office.holder)
	require.Less(t, g.since.Unix(), int64(m.office.since), "its lease began before that")
	m.keeps(t, w, int(g.since.Unix()))
}

// keeps has a waiter leave with the lock, whose lease began after a certain time.
func (m *modelLine) keeps(t *rapid.T, w *modelWaiter, since int) {
	if since > w.ended {
		require.Equal(t, w.owner, m.office.holder)
	}
	w.spot.keep()
	require.False(t, w.spot.leave(false))
	w.left, w.holds = true, true
}

// gives up has any waiter leave without it.
func (m *modelLine) givesUp(t *rapid.T) {
	all := m.waiting()
	if len(all) == 0 {
		t.Skip()
	}
	w := rapid.SampledFrom(all).Draw(t, "waiter")
	if w.ask != nil {
		t.Skip() // it leaves when it has heard
	}
	m.leaves(w)
}

func (m *modelLine) leaves(w *modelWaiter) {
	w.left = true
	if w.spot.leave(true) {
		m.cleansUp(w)
	}
}

// cleansUp withdraws what somebody has who has left: in the model at once.
func (m *modelLine) cleansUp(w *modelWaiter) {
	w.cleaned = true
	o := &m.office
	o.remove(w.owner)
	if o.holder == w.owner {
		if o.holder = ""; len(o.places) > 0 {
			m.passOn()
		}
	}
}

// check is what is true at any time.
func (m *modelLine) check(t *rapid.T) {
	underWay := func(w *modelWaiter) bool {
		if m.release != nil && m.release.offer.spot == w.spot {
			return true
		}
		return slices.ContainsFunc(m.messages, func(g lua.Grant) bool { return g.Owner == w.owner })
	}
	for _, w := range m.waiters {
		require.LessOrEqual(t, len(w.spot.gifts), 1)
		if !w.left || underWay(w) {
			continue
		}
		require.Equal(t, -1, m.office.placeOf(w.owner), "%s has left, and its place remains", w.owner)
		require.True(t, w.holds || m.office.holder != w.owner, "%s has left, and has the lock for good", w.owner)
	}
	m.lines.mu.Lock()
	defer m.lines.mu.Unlock()
	require.LessOrEqual(t, len(m.lines.enlisted), len(m.waiting()))
	if len(m.waiting()) == 0 {
		require.Empty(t, m.lines.byName)
	}
}

// Whatever comes in whatever order: a waiter has the lock only if the server says so, and for no longer; and of those who
// have left without it nothing remains that nobody looks after.
func TestModelOfHandOvers(t *testing.T) {
	program := func(t *rapid.T) {
		m := &modelLine{lines: newLines(&wire{})}
		m.office.grant("other:1")
		t.Repeat(map[string]func(*rapid.T){
			"":          m.check,
			"join":      m.join,
			"ask":       m.asks,
			"ask ex":    m.executeAsk,
			"hear":      m.hears,
			"offer":     m.offers,
			"offer ex":  m.executeRelease,
			"settle":    m.settles,
			"elsewhere": m.elsewhere,
			"deliver":   m.delivers,
			"wake":      m.wakes,
			"give up":   m.givesUp,
		})
	}
	for range 10 { // one check is a hundred programs, which is few for what takes several steps
		rapid.Check(t, program)
	}
}
