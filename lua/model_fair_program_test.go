//go:build redis

package lua_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/lua"
)

func TestFairLockAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	checkModel(
		t,
		func(t *rapid.T, p *program) map[string]func(*rapid.T) {
			return newFair(p, true).actions(t)
		},
	)
}

func TestFairLockOnAServerThatDoesNotCountListenersAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	checkModel(
		t,
		func(t *rapid.T, p *program) map[string]func(*rapid.T) {
			return newFair(p, false).actions(t)
		},
	)
}

var windows = evenly(time.Second, 4*time.Second, 20*time.Second, 5*time.Minute)

func (m *fairModel) actions(t *rapid.T) map[string]func(*rapid.T) {
	for _, owner := range []string{anna, bert, cleo, java} {
		m.subscribe(t, "UNSUBSCRIBE", lua.FairChannel(lock, owner))
	}
	actions := map[string]func(*rapid.T){
		"ask":               func(t *rapid.T) { m.ask(t, ours.Draw(t, "owner"), true) },
		"ask again":         func(t *rapid.T) { m.ask(t, ours.Draw(t, "owner"), true) },
		"try":               func(t *rapid.T) { m.ask(t, ours.Draw(t, "owner"), false) },
		"ask late":          m.askLate,
		"live":              m.live,
		"reenter":           m.reenter,
		"release":           m.releaseOrLeave,
		"force unlock":      m.forceUnlockAndTell,
		"renew":             m.renew,
		"inspect":           m.inspectQueue,
		"listen":            func(t *rapid.T) { m.hear(t, true) },
		"stop listening":    func(t *rapid.T) { m.hear(t, false) },
		"Java asks":         func(t *rapid.T) { m.javaAsks(t, true) },
		"Java tries":        func(t *rapid.T) { m.javaAsks(t, false) },
		"Java gives up":     m.javaGivesUp,
		"Java releases":     m.javaReleasesAndTells,
		"plain Java lock":   m.javaBarges,
		"head has no score": m.loseScore,
	}
	actions[""] = m.requireDistances
	return actions
}

// ask is an attempt of one of our owners, which keeps its window while it waits. Owners with a
// short window stop waiting after it.
func (m *fairModel) ask(t *rapid.T, owner string, waits bool) {
	r := lua.FairRequest{
		Owner:  owner,
		Count:  1,
		Lease:  leases.Draw(t, "lease"),
		Waits:  waits,
		Window: windows.Draw(t, "window"),
	}
	limited := r.Window < outlasts || rapid.Bool().Draw(t, "limited")
	if i := m.place(owner); i >= 0 {
		r.Window = time.Duration(m.queue[i].window) * time.Millisecond
		limited = m.budgets[owner] != nil
	}
	if waits && limited {
		r.Budget = r.Window
		r.Until = evenly(time.Time{}, otherClock).Draw(t, "until")
	}
	m.request(t, r)
}

// askLate is a request whose caller has left.
func (m *fairModel) askLate(t *rapid.T) {
	window := windows.Draw(t, "window")
	m.request(
		t,
		lua.FairRequest{
			Owner:  ours.Draw(t, "owner"),
			Count:  1,
			Lease:  leases.Draw(t, "lease"),
			Waits:  true,
			Window: window,
			Budget: window,
			Until:  longAgo,
		},
	)
}

func (m *fairModel) request(t *rapid.T, r lua.FairRequest) {
	var holder *lua.Holder
	m.step(t, func() {
		var err error
		holder, err = m.lock.Acquire(t.Context(), m, r)
		require.NoError(t, err)
	}, func() {
		m.requireHolder(t, m.asks(t, r), holder)
		if holder != nil {
			require.InDelta(t, m.now, holder.Clock.UnixMilli(), float64(m.slack+rounding))
		}
	})
}

// live lets time pass in which all our waiters listen and ask as often as they must. The holder may
// or may not renew its lease. Waiters that do so from the beginning never lose their place.
func (m *fairModel) live(t *rapid.T) {
	renews := rapid.Bool().Draw(t, "holder renews")
	for range rapid.IntRange(1, 8).Draw(t, "rounds") {
		for _, owner := range rapid.Permutation([]string{anna, bert, cleo}).Draw(t, "order") {
			if m.lost {
				return
			}
			if i := m.place(owner); i >= 0 {
				m.listenFor(t, owner, true)
				m.ask(t, owner, true)
			}
		}
		if renews {
			m.renew(t)
		}
		m.pass(t, evenly(time.Second, 3*time.Second, lua.MaxNap).Draw(t, "nap"))
	}
}

func (m *fairModel) releaseOrLeave(t *rapid.T) {
	owner, count := ours.Draw(t, "owner"), evenly(0, 0, 1).Draw(t, "count")
	var also []string // owners that leave with it
	if count == 0 {
		for range rapid.IntRange(0, 2).Draw(t, "others") {
			also = append(also, ours.Draw(t, "also"))
		}
	}
	all := slices.Concat(also, []string{owner})
	var out lua.Released
	m.step(t, func() {
		var err error
		if also == nil {
			out, err = m.lock.Release(t.Context(), m, count, owner)
		} else {
			out, err = m.lock.Release(t.Context(), m, 0, all...)
		}
		require.NoError(t, err)
	}, func() {
		held := slices.Contains(all, m.owner)
		require.Equal(t, lua.Released{Held: held}, out)
		if count > 0 {
			if held {
				m.count = count
			}
			return
		}
		if held {
			m.free()
			m.turn = nil
		}
		leaving := map[string]bool{}
		for _, owner := range all {
			if i := m.place(owner); i >= 0 && m.queue[i].score != nil {
				leaving[owner] = true
			}
		}
		for _, owner := range all {
			delete(m.budgets, owner)
		}
		if len(m.budgets) == 0 {
			m.forgetBudgets()
		}
		resigns := m.turn != nil && slices.Contains(all, m.turn.whose.owner)
		another := m.sweep(t, leaving)
		switch {
		case m.owner != "" && another:
			m.advise(m.left(), false)
		case m.owner == "" && (another || held || resigns):
			m.turn = nil
			m.offer(t, "")
		}
	})
}

func (m *fairModel) forceUnlockAndTell(t *rapid.T) {
	var out lua.Released
	m.step(t, func() {
		var err error
		out, err = m.lock.ForceUnlock(t.Context(), m)
		require.NoError(t, err)
	}, func() {
		require.Equal(t, lua.Released{Held: m.owner != ""}, out)
		if out.Held {
			m.free()
			m.turn = nil
		}
		m.sweep(t, nil)
		m.offer(t, "")
	})
}

func (m *fairModel) inspectQueue(t *rapid.T) {
	var state lua.State
	m.step(t, func() {
		var err error
		state, err = lua.InspectFair(t.Context(), m, lock)
		require.NoError(t, err)
	}, func() {
		m.requireState(t, state)
		require.Len(t, state.Queue, len(m.queue))
		for i, w := range m.queue {
			require.Equal(t, w.owner, state.Queue[i])
		}
	})
}

func (m *fairModel) hear(t *rapid.T, listens bool) {
	m.listenFor(t, evenly(anna, bert, cleo, java).Draw(t, "owner"), listens)
}

func (m *fairModel) listenFor(t require.TestingT, owner string, listens bool) {
	if m.listening[owner] != listens {
		m.listening[owner] = listens
		m.subscribe(
			t,
			map[bool]string{true: "SUBSCRIBE", false: "UNSUBSCRIBE"}[listens],
			lua.FairChannel(lock, owner),
		)
	}
}
