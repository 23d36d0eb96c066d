//go:build redis

package lua_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/lua"
)

// batchModel is the model of four locks, each for one owner at a time, that are acquired and
// released one by one or as a batch.
type batchModel struct {
	*program
	held map[string]*grip
}

// grip is an owner's hold of one of the locks.
type grip struct {
	owner string
	count int
	ends  *int64
}

var (
	several = []string{"a", "b", "c", "d"}
	one     = evenly(several...)
)

func TestBatchesAgreeWithTheirModel(t *testing.T) {
	t.Parallel()
	checkModel(t, func(_ *rapid.T, p *program) map[string]func(*rapid.T) {
		m := &batchModel{program: p, held: map[string]*grip{}}
		p.model = m
		return map[string]func(*rapid.T){
			"acquire batch":       m.acquireBatch,
			"acquire batch again": m.acquireBatch,
			"release batch":       m.releaseBatch,
			"acquire":             m.acquire,
			"release":             m.release,
			"end":                 m.end,
		}
	})
}

func (m *batchModel) want() keyspace {
	k := keyspace{}
	for lock, g := range m.held {
		k[lock] = entry{hash: map[string]string{g.owner: strconv.Itoa(g.count)}, ends: g.ends}
	}
	return k
}

func (m *batchModel) limits() []int64 { return nil }

func (m *batchModel) expire(now int64) {
	for lock, g := range m.held {
		if *g.ends <= now {
			delete(m.held, lock)
		}
	}
}

// owned reports whether an owner holds a lock.
func (m *batchModel) owned(lock, owner string) bool {
	return m.held[lock] != nil && m.held[lock].owner == owner
}

// holder returns the holder that keeps an owner from a lock.
func (m *batchModel) holder(lock, owner string) *lua.Holder {
	g := m.held[lock]
	if g == nil || g.owner == owner {
		return nil
	}
	return &lua.Holder{Owner: g.owner, TTL: time.Duration(*g.ends-m.now) * time.Millisecond}
}

func (m *batchModel) take(lock, owner string, count int, lease time.Duration) {
	ends := m.now + lease.Milliseconds()
	if g := m.held[lock]; g != nil {
		ends = max(ends, *g.ends)
	}
	m.held[lock] = &grip{owner, count, &ends}
}

// leave reports whether the owner held the lock.
func (m *batchModel) leave(lock, owner string, count int) bool {
	if !m.owned(lock, owner) {
		return false
	}
	if m.held[lock].count = count; count == 0 {
		delete(m.held, lock)
		m.told = append(m.told, message{"PUBLISH", lua.Channel(lock), lua.Unlocked})
	}
	return true
}

// some draws some of the locks, in any order.
func some(t *rapid.T) []string {
	n := evenly(0, 1, 2, 2, 3, 3, 4).Draw(t, "how many")
	return rapid.Permutation(several).Draw(t, "locks")[:n]
}

// mostly draws an owner, in most cases the given one.
func mostly(t *rapid.T, owner string) string {
	return evenly(owner, owner, owner, ours.Draw(t, "another owner")).Draw(t, "owner")
}

func (m *batchModel) acquireBatch(t *rapid.T) {
	lease, owner := leases.Draw(t, "lease"), ours.Draw(t, "owner")
	var requests []lua.BatchPart
	for _, lock := range some(t) {
		request := lua.BatchPart{
			Lock:  lock,
			Owner: mostly(t, owner),
			Count: evenly(1, 2, 3).Draw(t, "count"),
		}
		// In most cases what the owner believes is true.
		request.Nested = m.owned(lock, request.Owner) != rarely.Draw(t, "mistaken")
		requests = append(requests, request)
	}
	var index int
	var holder *lua.Holder
	m.step(t, func() {
		var err error
		index, holder, err = lua.AcquireBatch(t.Context(), m, lease, requests)
		require.NoError(t, err)
	}, func() {
		for i, want := range requests {
			if m.owned(want.Lock, want.Owner) || !want.Nested && m.held[want.Lock] == nil {
				continue
			}
			require.Equal(t, i, index)
			if want.Nested {
				require.Nil(t, holder)
			} else {
				m.requireHolder(t, m.holder(want.Lock, want.Owner), holder)
			}
			return
		}
		require.Equal(t, -1, index)
		require.Nil(t, holder)
		for _, taken := range requests {
			m.take(taken.Lock, taken.Owner, taken.Count, lease)
		}
	})
}

func (m *batchModel) releaseBatch(t *rapid.T) {
	owner := ours.Draw(t, "owner")
	var releases []lua.BatchPart
	for _, lock := range some(t) {
		releases = append(
			releases,
			releaseOf(lock, mostly(t, owner), evenly(0, 0, 1, 2).Draw(t, "count")),
		)
	}
	if rarely.Draw(t, "twice") && len(releases) > 0 {
		releases = append(releases, releases[0])
	}
	var parts []lua.BatchReleased
	m.step(t, func() {
		var err error
		parts, err = lua.ReleaseBatch(t.Context(), m, lua.Classic, releases)
		require.NoError(t, err)
	}, func() {
		require.Len(t, parts, len(releases))
		for i, l := range releases {
			want := lua.BatchReleased{
				Released: lua.Released{Held: m.leave(l.Lock, l.Owner, l.Count)},
			}
			require.Equal(t, want, parts[i], "%v", l)
		}
	})
}

func (m *batchModel) acquire(t *rapid.T) {
	lock, owner, lease := one.Draw(t, "lock"), ours.Draw(t, "owner"), leases.Draw(t, "lease")
	var holder *lua.Holder
	m.step(t, func() {
		var err error
		holder, err = lockPlain(t.Context(), m, lock, owner, lease)
		require.NoError(t, err)
	}, func() {
		want := m.holder(lock, owner)
		if m.requireHolder(t, want, holder); want == nil {
			m.take(lock, owner, 1, lease)
		}
	})
}

func (m *batchModel) release(t *rapid.T) {
	l := releaseOf(one.Draw(t, "lock"), ours.Draw(t, "owner"), evenly(0, 1, 2).Draw(t, "count"))
	var out lua.Released
	m.step(t, func() {
		var err error
		out, err = unlock(t.Context(), m, l.Lock, l.Owner, l.Count)
		require.NoError(t, err)
	}, func() {
		require.Equal(t, lua.Released{Held: m.leave(l.Lock, l.Owner, l.Count)}, out)
	})
}

// end ends a lease at once, as another program's PEXPIRE does.
func (m *batchModel) end(t *rapid.T) {
	lock := one.Draw(t, "lock")
	m.plainly(t, func() [][]string {
		delete(m.held, lock)
		return [][]string{{"PEXPIRE", lock, "0"}}
	})
}
