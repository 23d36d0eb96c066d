//go:build redis

package lua_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/internal/wire"
	"holdfast/lua"
)

// exclusiveModel is the model of a lock for one owner at a time.
type exclusiveModel struct {
	*program
	fenced bool

	owner string // "" when the lock is free
	count int
	ends  *int64 // nil: never
	token int64  // the last one issued
	given int64  // the token of the present hold, if it has one
}

func newExclusive(p *program, fenced bool) *exclusiveModel {
	m := &exclusiveModel{program: p, fenced: fenced}
	p.model = m
	return m
}

func (m *exclusiveModel) want() keyspace {
	k := keyspace{}
	if m.owner != "" {
		k[lock] = entry{hash: map[string]string{m.owner: strconv.Itoa(m.count)}, ends: m.ends}
	}
	if m.token > 0 {
		k["redisson_lock_token:{"+lock+"}"] = entry{text: strconv.FormatInt(m.token, 10)}
	}
	return k
}

func (m *exclusiveModel) limits() []int64 { return nil }

func (m *exclusiveModel) expire(now int64) {
	if m.owner != "" && m.ends != nil && *m.ends <= now {
		m.free()
	}
}

func (m *exclusiveModel) free() { m.owner, m.count, m.ends = "", 0, nil }

// hold leaves the owner with a count, and a lease that is never shorter than before.
func (m *exclusiveModel) hold(owner string, count int, lease time.Duration) {
	if m.owner != owner {
		m.free()
	}
	extended := m.now + lease.Milliseconds()
	switch {
	case m.owner == "":
		m.ends = &extended
	case m.ends != nil:
		m.ends = instant(max(*m.ends, extended))
	}
	m.owner, m.count = owner, count
}

// left returns the rest of the lease.
func (m *exclusiveModel) left() time.Duration {
	if m.ends == nil {
		return wire.NoExpiry
	}
	return time.Duration(*m.ends-m.now) * time.Millisecond
}

func (m *exclusiveModel) announce() {
	m.told = append(m.told, message{"PUBLISH", lockChannel, "0"})
}

func TestReentrantLockAgreesWithItsModel(t *testing.T) {
	checkModel(t, func(t *rapid.T, p *program) actions { return newHandOver(t, p, false).actions() })
}

func TestFencedLockAgreesWithItsModel(t *testing.T) {
	checkModel(t, func(t *rapid.T, p *program) actions { return newHandOver(t, p, true).actions() })
}

func (m *exclusiveModel) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"acquire":       m.acquire,
		"acquire again": m.acquire,
		"reenter":       m.reenter,
		"release":       m.release,
		"force unlock":  m.forceUnlock,
		"renew":         m.renew,
		"inspect":       m.inspect,
		"Java acquires": m.javaAcquires,
		"Java releases": m.javaReleases,
	}
}

func (m *exclusiveModel) acquire(t *rapid.T) {
	owner, lease := ours.Draw(t, "owner"), leases.Draw(t, "lease")
	var holder *lua.Holder
	var token int64
	m.step(t, func() {
		var err error
		token, _, holder, err = lua.NewExclusive(lock, m.fenced).Acquire(t.Context(), m, owner, lease, "")
		require.NoError(t, err)
	}, func() {
		if m.owner != "" && m.owner != owner {
			m.requireHolder(t, &lua.Holder{Owner: m.owner, TTL: m.left()}, holder)
			require.Zero(t, token)
			return
		}
		require.Nil(t, holder)
		if taken := m.owner == ""; m.fenced && taken {
			require.Greater(t, token, m.token, "tokens grow")
			m.token++
			m.given = m.token
		}
		require.Equal(t, m.given, token, "a hold keeps its token")
		m.hold(owner, 1, lease)
	})
}

func (m *exclusiveModel) reenter(t *rapid.T) {
	owner, count := ours.Draw(t, "owner"), evenly(1, 2, 3, 4).Draw(t, "count")
	lease := leases.Draw(t, "lease")
	attempt(t, m.program, func() (bool, error) {
		return lua.Reenter(t.Context(), m, lua.Held{Lock: lock, Owner: owner}, count, lease)
	}, func(ok bool) {
		require.Equal(t, m.owner == owner, ok)
		if ok {
			m.hold(owner, count, lease)
		}
	})
}

func (m *exclusiveModel) release(t *rapid.T) {
	owner, count := ours.Draw(t, "owner"), evenly(0, 1, 2).Draw(t, "count")
	attempt(t, m.program, func() (lua.Released, error) {
		return unlock(t.Context(), m, owner, count)
	}, func(out lua.Released) {
		require.Equal(t, lua.Released{Held: m.owner == owner}, out)
		switch {
		case m.owner != owner:
		case count > 0:
			m.count = count
		default:
			m.free()
			m.announce()
		}
	})
}

func (m *exclusiveModel) forceUnlock(t *rapid.T) {
	attempt(t, m.program, func() (lua.Released, error) {
		return plain.ForceUnlock(t.Context(), m, wire.Classic)
	}, func(out lua.Released) {
		require.Equal(t, lua.Released{Held: m.owner != ""}, out)
		if out.Held {
			m.free()
			m.announce()
		}
	})
}

// renew renews for all owners at once. Only the holder may be told that it holds the lock.
func (m *exclusiveModel) renew(t *rapid.T) {
	lease := leases.Draw(t, "lease")
	renewals := []lua.Held{
		{Lock: lock, Owner: anna},
		{Lock: "another", Owner: anna},
		{Lock: lock, Owner: bert},
		{Lock: lock, Owner: cleo},
	}
	attempt(t, m.program, func() ([]bool, error) {
		return lua.Renew(t.Context(), m, lease, renewals)
	}, func(held []bool) {
		for i, renewal := range renewals {
			require.Equal(t, renewal.Lock == lock && renewal.Owner == m.owner, held[i], "%v", renewal)
			if held[i] {
				m.hold(m.owner, m.count, lease)
			}
		}
	})
}

func (m *exclusiveModel) inspect(t *rapid.T) {
	var state lua.State
	m.step(t, func() {
		var err error
		look := lua.Inspect
		if m.fenced {
			look = lua.InspectFenced
		}
		state, err = look(t.Context(), m, lock)
		require.NoError(t, err)
	}, func() { m.requireState(t, state) })
}

// requireState asserts all that was seen but the queue: the hold and its token.
func (m *exclusiveModel) requireState(t *rapid.T, state lua.State) {
	t.Helper()
	want := lua.State{Queue: state.Queue, TTL: state.TTL}
	if m.owner != "" {
		want.Holds = []lua.Hold{{Owner: m.owner, Count: m.count}}
		require.InDelta(t, m.left(), state.TTL, float64(time.Duration(m.slack+2)*time.Millisecond))
	} else {
		require.Zero(t, state.TTL)
	}
	if m.fenced {
		want.Fence = m.token
	}
	require.Equal(t, want, state)
}

// javaAcquires takes or re-enters the lock as Redisson does: it counts up, and its lease begins
// now, whatever was left. A lock of Redisson's without expiry cannot be acquired, but found.
func (m *exclusiveModel) javaAcquires(t *rapid.T) {
	lease, forever := leases.Draw(t, "lease"), rarely.Draw(t, "forever")
	m.plainly(t, func() [][]string {
		if m.owner != "" && m.owner != java {
			return nil
		}
		commands := [][]string{{"HINCRBY", lock, java, "1"}}
		m.owner, m.ends = java, instant(m.now+lease.Milliseconds())
		m.count++
		if m.fenced {
			commands = append(commands, []string{"INCR", "redisson_lock_token:{" + lock + "}"})
			m.token++
			m.given = m.token
		}
		if forever {
			m.ends = nil
			return append(commands, []string{"PERSIST", lock})
		}
		return append(commands, []string{"PEXPIRE", lock, ms(lease)})
	})
}

// javaReleases counts down. While levels are left, the lease begins anew.
func (m *exclusiveModel) javaReleases(t *rapid.T) {
	m.plainly(t, func() [][]string {
		if m.owner != java {
			return nil
		}
		m.count--
		if m.count > 0 {
			m.ends = instant(m.now + lease.Milliseconds())
			return [][]string{{"HINCRBY", lock, java, "-1"}, {"PEXPIRE", lock, ms(lease)}}
		}
		m.free()
		return [][]string{{"DEL", lock}, {"PUBLISH", lockChannel, "0"}}
	})
}
