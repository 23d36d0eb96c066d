//go:build redis

package lua_test

import (
	"time"

	"holdfast/lua"
)

// asksToRead is an attempt to read. It returns the holder in the way.
func (m *readWriteModel) asksToRead(
	owner string,
	number int,
	lease time.Duration,
	waits, waited bool,
) *lua.Holder {
	var holder *lua.Holder
	if m.mode == "write" && m.writer != owner {
		holder = m.holder()
	} else if m.mode != "write" && !m.reads(owner) && (!waited || m.turn == nil) {
		holder = m.precedes()
	}
	if holder == nil {
		m.takeRead(owner, number, lease)
	} else if m.lock.Bound > 0 && waits {
		m.row = instant(m.now + forgotten.Milliseconds())
	}
	return holder
}

// precedes returns the writer that new readers step back for.
func (m *readWriteModel) precedes() *lua.Holder {
	if m.lock.Bound == 0 || m.waiting == nil {
		return nil
	}
	nap := min(*m.waiting.since+m.lock.Bound.Milliseconds(), *m.waiting.ends) - m.now
	if nap <= 0 {
		return nil
	}
	return &lua.Holder{
		Owner: m.waiting.owner,
		Next:  true,
		Nap:   time.Duration(nap) * time.Millisecond,
	}
}

// asksToWrite is an attempt to write. It returns the holder in the way.
func (m *readWriteModel) asksToWrite(
	owner string,
	number int,
	lease time.Duration,
	waits bool,
) *lua.Holder {
	bound := m.lock.Bound.Milliseconds()
	if m.mode != "" && m.writer != owner {
		if bound > 0 && waits && m.mode == "read" &&
			(m.waiting == nil || m.waiting.owner == owner) {
			// Readers step back for the bound, and then have a tenth of it for themselves.
			since := instant(m.now)
			if m.waiting != nil && m.now < *m.waiting.since+bound*11/10 {
				since = m.waiting.since
			}
			m.waiting = &waitingWriter{owner, since, instant(m.now + forgotten.Milliseconds())}
		}
		return m.holder()
	}
	if bound > 0 && m.mode == "" && m.turn != nil {
		return &lua.Holder{Next: true, Nap: time.Duration(*m.turn-m.now) * time.Millisecond}
	}
	taken := m.mode == ""
	m.mode, m.writer, m.writes = "write", owner, number
	m.last(lease, taken)
	if bound > 0 {
		m.stopWaiting(owner)
	}
	return nil
}

// stopWaiting ends a writer's precedence. It reports whether the writer had it.
func (m *readWriteModel) stopWaiting(owner string) bool {
	waited := m.waiting != nil && m.waiting.owner == owner
	if waited {
		m.waiting = nil
	}
	return waited
}

// leaveWrite takes the write lock or its precedence from an owner.
func (m *readWriteModel) leaveWrite(owner string) lua.Released {
	waited := m.lock.Bound > 0 && m.stopWaiting(owner)
	if m.writer != owner {
		if waited {
			m.announce("1")
		}
		return lua.Released{}
	}
	m.writer = ""
	m.onlyReaders("1")
	if m.lock.Bound > 0 && m.row != nil {
		m.row, m.turn = nil, instant(m.now+readersTurn.Milliseconds())
	}
	return lua.Released{Held: true, Reading: m.mode == "read"}
}
