//go:build redis

package lua_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/internal/wire"
	"holdfast/lua"
)

// handOverModel is the model of a lock for one owner at a time that is handed over to waiters.
type handOverModel struct {
	*exclusiveModel
	lock *lua.Exclusive

	waiting []registration // first come first
	keep    *int64         // when all of them expire; nil: there is none

	// listening has our owners whose clients listen, listeners on the channel of the lock, and
	// unregistered.
	listening map[string]bool
	last      int64          // the last one issued
	grants    map[int64]bool // grants that were seen
}

// registration is an owner that waits.
type registration struct {
	owner  string
	ticket int64
}

// unregistered waits without a registration, for a client that may register.
const unregistered = somebody

func newHandOver(t *rapid.T, p *program, fenced bool) *handOverModel {
	m := &handOverModel{
		exclusiveModel: newExclusive(p, fenced),
		lock:           lua.NewExclusive(lock, fenced),
		listening:      map[string]bool{},
		grants:         map[int64]bool{},
	}
	p.model = m
	for _, who := range []string{anna, bert, cleo, java, unregistered} {
		m.hear(t, who, who == anna || who == bert) // whatever the previous program left
	}
	return m
}

// waiterLeaseOf returns the lease of an owner that waits.
func waiterLeaseOf(owner string) time.Duration {
	leases := map[string]time.Duration{
		anna: 2 * time.Second, bert: 30 * time.Second, cleo: 7 * time.Second}
	return leases[owner]
}

// registrationOf returns the registration of an owner as the package writes it.
func (m *handOverModel) registrationOf(owner string) string {
	return m.lock.Registration(owner, waiterLeaseOf(owner))
}

func (m *handOverModel) want() keyspace {
	k := m.exclusiveModel.want()
	if len(m.waiting) > 0 {
		tickets := map[string]string{}
		for _, w := range m.waiting {
			tickets[m.registrationOf(w.owner)] = strconv.FormatInt(w.ticket, 10)
		}
		k[waiters] = entry{hash: tickets, ends: m.keep, early: 10}
	}
	return k
}

func (m *handOverModel) expire(now int64) {
	m.exclusiveModel.expire(now)
	if m.keep != nil && *m.keep <= now {
		m.waiting, m.keep = nil, nil
	}
}

// ticket returns the ticket of an owner, or 0.
func (m *handOverModel) ticket(owner string) int64 {
	for _, w := range m.waiting {
		if w.owner == owner {
			return w.ticket
		}
	}
	return 0
}

// register notes that an owner is registered, with the ticket it was told. It returns the ticket it
// should have been told, as far as that is known: its own if it waited already, or else one larger
// than all before.
func (m *handOverModel) register(owner string, told int64) int64 {
	m.keep = instant(m.now + 3*lua.LongestSleep.Milliseconds())
	if had := m.ticket(owner); had != 0 {
		return had
	}
	if told <= m.last {
		return m.last + 1
	}
	m.last = told
	m.waiting = append(m.waiting, registration{owner, told})
	return told
}

// withdraw removes an owner's registration.
func (m *handOverModel) withdraw(owner string) {
	m.waiting = slices.DeleteFunc(m.waiting, func(w registration) bool { return w.owner == owner })
	if len(m.waiting) == 0 {
		m.keep = nil
	}
}

// oldest returns the longest waiting owner whose client listens and that does not leave the lock
// just now, or "".
func (m *handOverModel) oldest(leaving string) string {
	for _, w := range m.waiting {
		if w.owner != leaving && m.listening[w.owner] {
			return w.owner
		}
	}
	return ""
}

// grant grants a waiter a free lock.
func (m *handOverModel) grant(owner string) {
	m.withdraw(owner)
	m.hold(owner, 1, waiterLeaseOf(owner))
	m.number()
}

// number numbers an acquisition.
func (m *handOverModel) number() {
	if m.fenced {
		m.token++
		m.given = m.token
	}
}

// grantOldest grants a free lock to the longest waiting owner that listens, and announces that.
// Those before it lose their registrations, as does the owner that leaves. It returns "" if none
// listens.
func (m *handOverModel) grantOldest(leaving string, streak wire.Streak) string {
	successor := m.oldest(leaving)
	for len(m.waiting) > 0 {
		w := m.waiting[0]
		m.withdraw(w.owner)
		if w.owner != successor { // it leaves, or has no listener
			continue
		}
		m.number()
		fence := int64(0)
		if m.fenced {
			fence = m.token
		}
		sign := map[bool]string{true: "+"}[clientOf(leaving) == clientOf(w.owner)]
		grant := fmt.Sprint(w.owner, " ", sign, w.ticket, " ", fence, " ", streak.Count+1, " ",
			streak.Began, " ", lock)
		m.told = append(m.told, message{"PUBLISH", present + ":" + clientOf(w.owner), grant})
		m.hold(successor, 1, waiterLeaseOf(successor))
		m.tellOf(waiterLeaseOf(successor))
		return successor
	}
	return ""
}

// release releases the lock, which is held, and returns what the reply should be. The ticket and
// the begin of a streak, when they are new, are taken from the reply.
func (m *handOverModel) release(p lua.HandOver, next string, told lua.Released) lua.Released {
	leaving := m.owner
	m.free()
	toNext := func() lua.Released {
		m.grant(next)
		m.tellOf(waiterLeaseOf(next))
		return lua.Released{Held: true, To: lua.Successor, Fence: m.fence()}
	}
	if next != "" && p.SuccessorFirst {
		return toNext()
	}
	if p.Others && !freeForOnce(p.Streak) {
		if m.listening[java] || m.listening[unregistered] {
			m.dropAll(leaving)
		} else {
			switch successor := m.grantOldest(leaving, p.Streak); {
			case successor != "" && (next == "" || successor == next):
				return lua.Released{Held: true, To: lua.Other}
			case successor != "":
				ticket := m.register(next, told.Ticket)
				return lua.Released{Held: true, To: lua.Other, Ticket: ticket}
			case next != "":
				r := toNext()
				r.Began = p.Streak.Began
				if r.Began == 0 && p.Streak.Count > 0 {
					r.Began = max(told.Began, 1)
				}
				return r
			}
		}
	}
	m.announce()
	return lua.Released{Held: true}
}

// tellOf tells all waiters of a short lease that they did not ask for.
func (m *handOverModel) tellOf(lease time.Duration) {
	if lease < lua.LongestSleep {
		m.told = append(m.told, message{"PUBLISH", lockChannel, soon})
	}
}

// dropAll drops registrations as a release does that only then finds that it must be announced.
func (m *handOverModel) dropAll(leaving string) {
	if len(m.waiting) > 0 && m.waiting[0].owner == leaving {
		m.withdraw(leaving)
	}
	if len(m.waiting) == 1 {
		m.keep = instant(m.now + 3*lua.LongestSleep.Milliseconds())
	}
}

// ever is a time that does not come.
const ever = 1 << 52

// freeForOnce reports whether a lock with that streak should become free now: either the streak
// began long ago, or the clock was set back since. What is between is left to unit tests.
func freeForOnce(before wire.Streak) bool { return before.Began > 0 && (before.Count+1)%4 == 0 }

// fence returns the number of the present hold, or 0 if the lock is not fenced.
func (m *handOverModel) fence() int64 {
	if !m.fenced {
		return 0
	}
	return m.given
}

func (m *handOverModel) actions() map[string]func(*rapid.T) {
	actions := m.exclusiveModel.actions()
	delete(actions, "acquire again")
	delete(actions, "release")
	for name, action := range map[string]func(*rapid.T){
		"wait":           func(t *rapid.T) { m.wait(t, ours.Draw(t, "owner")) },
		"crowd waits":    m.crowd,
		"crowd passes":   func(t *rapid.T) { m.crowd(t); m.leave(t) },
		"crowd goes on":  func(t *rapid.T) { m.crowd(t); m.leave(t); m.leave(t) },
		"release":        m.leave,
		"release again":  m.leave,
		"release unseen": m.exclusiveModel.release,
		"give up":        m.giveUp,
		"client comes":   func(t *rapid.T) { m.hear(t, ours.Draw(t, "owner"), true) },
		"client goes":    func(t *rapid.T) { m.hear(t, ours.Draw(t, "owner"), false) },
		"Java listens":   func(t *rapid.T) { m.hear(t, java, rarely.Draw(t, "listens")) },
		"RedLock waits":  func(t *rapid.T) { m.hear(t, unregistered, rarely.Draw(t, "listens")) },
	} {
		actions[name] = action
	}
	return actions
}

// wait asks for the lock as a waiter does, with a registration if its client listens.
func (m *handOverModel) wait(t *rapid.T, owner string) {
	registration := ""
	if m.listening[owner] || rarely.Draw(t, "and does not listen") {
		registration = m.registrationOf(owner)
	}
	var (
		fence  int64
		ticket int64
		holder *lua.Holder
	)
	m.step(t, func() {
		var err error
		fence, ticket, holder, err = m.lock.Acquire(
			t.Context(),
			m,
			owner,
			waiterLeaseOf(owner),
			registration,
		)
		require.NoError(t, err)
	}, func() {
		if m.owner != "" && m.owner != owner {
			m.requireHolder(t, &lua.Holder{Owner: m.owner, TTL: m.left()}, holder)
			require.Zero(t, fence)
			want := int64(0)
			if registration != "" {
				want = m.register(owner, ticket)
			}
			require.Equal(t, want, ticket)
			return
		}
		require.Nil(t, holder)
		require.Zero(t, ticket)
		if m.owner == "" {
			m.number()
		}
		require.Equal(t, m.fence(), fence, "a hold keeps its token")
		m.hold(owner, 1, waiterLeaseOf(owner))
		if registration != "" {
			m.withdraw(owner)
		}
	})
}

// crowd has all our owners wait, in any order.
func (m *handOverModel) crowd(t *rapid.T) {
	for _, owner := range rapid.Permutation([]string{anna, bert, cleo}).Draw(t, "order") {
		if !m.lost {
			m.wait(t, owner)
		}
	}
}

// leave releases the lock, and hands it over to waiters.
func (m *handOverModel) leave(t *rapid.T) {
	if m.lost {
		return
	}
	owner := ours.Draw(t, "owner")
	if slices.Contains([]string{anna, bert, cleo}, m.owner) && !rarely.Draw(t, "another") {
		owner = m.owner
	}
	count := evenly(0, 0, 0, 1).Draw(t, "count")
	p := lua.HandOver{
		Others:         evenly(true, true, true, false).Draw(t, "others"),
		SuccessorFirst: rapid.Bool().Draw(t, "next first"),
	}
	next := evenly("", "", anna, bert, cleo).Draw(t, "next")
	if next == owner {
		next = ""
	}
	if next != "" {
		p.Successor = m.registrationOf(next)
	}
	p.Streak = evenly(
		wire.Streak{},
		wire.Streak{Count: 2, Began: 1},
		wire.Streak{Count: 3, Began: 1},
		wire.Streak{Count: 11, Began: ever},
		wire.Streak{Count: 14, Began: 1},
		wire.Streak{Count: 15, Began: 1},
	).Draw(t, "streak")
	if rarely.Draw(t, "gives up") {
		p.Withdrawn = m.registrationOf(owner)
	}
	m.releases(t, owner, count, p, next)
}

// giveUp is what a waiter does when it leaves.
func (m *handOverModel) giveUp(t *rapid.T) {
	owner := ours.Draw(t, "owner")
	m.releases(t, owner, 0, lua.HandOver{Others: true, Withdrawn: m.registrationOf(owner)}, "")
}

func (m *handOverModel) releases(t *rapid.T, owner string, count int, p lua.HandOver, next string) {
	attempt(t, m.program, func() (lua.Released, error) {
		return m.lock.Release(t.Context(), m, owner, count, p)
	}, func(out lua.Released) {
		if p.Withdrawn != "" && count == 0 {
			m.withdraw(owner)
		}
		oldest := m.oldest(owner)
		var want lua.Released
		switch {
		case m.owner != owner:
		case count > 0:
			m.count, want.Held = count, true
		default:
			want = m.release(p, next, out)
			m.requireNobodyForgotten(t, out, oldest, p, next)
		}
		require.Equal(t, want, out)
		m.requireGrantedOnce(t)
	})
}

// requireNobodyForgotten asserts, only from what Redis holds and what was published, that a waiter
// has the lock that was released: the intended one, or the longest waiting of those that listen.
// Otherwise all were told.
func (m *handOverModel) requireNobodyForgotten(
	t *rapid.T,
	out lua.Released,
	oldest string,
	p lua.HandOver,
	next string,
) {
	t.Helper()
	owners := parse(t, m.snapshots[len(m.snapshots)-1]).keys[lock].hash
	announced := slices.Contains(m.world.told, message{"PUBLISH", lockChannel, "0"})
	require.LessOrEqual(t, len(owners), 1, "one owner has the lock at a time")
	require.Equal(t, len(owners) == 0, announced)
	require.Equal(t, out.To == lua.Nobody, announced)
	for successor := range owners {
		switch {
		case next != "" && (p.SuccessorFirst || oldest == ""):
			require.Equal(t, next, successor)
			require.Equal(t, lua.Successor, out.To)
		default:
			require.Equal(t, oldest, successor)
			require.Equal(t, lua.Other, out.To)
			require.False(
				t,
				m.listening[java] || m.listening[unregistered],
				"waiters without registration were passed by",
			)
		}
	}
}

// requireGrantedOnce asserts that no two messages have the same ticket.
func (m *handOverModel) requireGrantedOnce(t *rapid.T) {
	t.Helper()
	for _, told := range m.world.told {
		if !strings.HasPrefix(told.channel, present) {
			continue
		}
		grant, ok := wire.ParseGrant(told.text)
		require.True(t, ok, told.text)
		require.False(t, m.grants[grant.Ticket], "a registration was granted twice")
		m.grants[grant.Ticket] = true
	}
}

// hear has a client listen from now on, or stop listening.
func (m *handOverModel) hear(t *rapid.T, who string, listens bool) {
	m.listening[who] = listens
	channels := []string{lockChannel}
	switch who {
	case java:
	case unregistered:
		channels = append(channels, present, wire.AnnouncementChannel(lock))
	default:
		channels = append(channels, wire.PairedChannels(lockChannel, clientOf(who))...)
	}
	for _, channel := range channels {
		m.ears[who].subscribe(
			t,
			map[bool]string{true: "SUBSCRIBE", false: "UNSUBSCRIBE"}[listens],
			channel,
		)
	}
}

func clientOf(owner string) string {
	client, _, _ := strings.Cut(owner, ":")
	return client
}
