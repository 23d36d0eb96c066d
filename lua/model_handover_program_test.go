//go:build redis

package lua_test

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/lua"
)

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
		lua.Streak{},
		lua.Streak{Count: 2, Began: 1},
		lua.Streak{Count: 3, Began: 1},
		lua.Streak{Count: 11, Began: ever},
		lua.Streak{Count: 14, Began: 1},
		lua.Streak{Count: 15, Began: 1},
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
	var out lua.Released
	m.step(t, func() {
		var err error
		out, err = m.lock.Release(t.Context(), m, owner, count, p)
		require.NoError(t, err)
	}, func() {
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
		grant, ok := lua.ParseGrant(told.text)
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
		channels = append(channels, present, lua.AnnouncementChannel(lock))
	default:
		channels = append(channels, lua.PairedChannels(lockChannel, clientOf(who))...)
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
