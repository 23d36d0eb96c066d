//go:build redis

package lua_test

import (
	"strconv"
	"time"

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
		return lua.NoExpiry
	}
	return time.Duration(*m.ends-m.now) * time.Millisecond
}

func (m *exclusiveModel) announce() {
	m.told = append(m.told, message{"PUBLISH", lockChannel, "0"})
}
