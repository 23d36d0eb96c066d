//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/lua"
)

func TestReadWriteLockAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	checkModel(
		t,
		func(_ *rapid.T, p *program) map[string]func(*rapid.T) {
			return newReadWrite(p, lease).actions()
		},
	)
}

func TestReadWriteLockWithoutPrecedenceAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	checkModel(
		t,
		func(_ *rapid.T, p *program) map[string]func(*rapid.T) {
			return newReadWrite(p, 0).actions()
		},
	)
}

func (m *readWriteModel) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": m.requireExclusion,
		"read": func(t *rapid.T) {
			m.read(t, ours.Draw(t, "owner"), rapid.Bool().Draw(t, "waits"))
		},
		"read too": func(t *rapid.T) {
			m.read(t, ours.Draw(t, "owner"), rapid.Bool().Draw(t, "waits"))
		},
		"read again":   m.readAgain,
		"stop reading": m.stopReading,
		"write": func(t *rapid.T) {
			m.write(t, ours.Draw(t, "owner"), rapid.Bool().Draw(t, "waits"))
		},
		"write again": m.writeAgain,
		"stop writing": func(t *rapid.T) {
			m.stopWriting(t, ours.Draw(t, "owner"), evenly(0, 1).Draw(t, "number"))
		},
		"force out":          m.forceOut,
		"change over":        m.changeOver,
		"wait for readers":   m.waitForReaders,
		"renew reads":        m.renewReads,
		"renew writes":       m.renewWrites,
		"inspect":            m.inspect,
		"Java reads":         m.javaReads,
		"Java stops reading": m.javaStopsReading,
		"Java writes":        m.javaWrites,
		"Java stops writing": m.javaStopsWriting,
	}
}

// changeOver has a writer leave while others wait, which chance alone seldom does, and then one of
// those ask.
func (m *readWriteModel) changeOver(t *rapid.T) {
	for _, attempt := range []func(){
		func() { m.write(t, anna, false) },
		func() { m.read(t, bert, true) },
		func() { m.write(t, cleo, true) },
		func() { m.stopWriting(t, anna, 0) },
		func() { m.write(t, cleo, true) },
	} {
		if !m.lost {
			attempt()
		}
	}
}

// waitForReaders has a writer ask as often as it must, for longer than readers step back for it.
func (m *readWriteModel) waitForReaders(t *rapid.T) {
	for range evenly(3, 8).Draw(t, "rounds") {
		if m.read(t, bert, false); !m.lost {
			m.write(t, cleo, true)
		}
		if !m.lost {
			m.read(t, anna, true)
		}
		m.pass(t, lua.MaxNap)
		if m.lost {
			return
		}
	}
}

// requireExclusion asserts that a writer has the lock for itself, and that the lock lasts as long
// as the longest hold.
func (m *readWriteModel) requireExclusion(t *rapid.T) {
	t.Helper()
	for owner, r := range m.readers {
		require.True(t, m.writer == "" || m.writer == owner, "%s writes and %s reads", m.writer,
			owner)
		for _, h := range r.holds {
			if h == nil || m.ends == nil {
				continue
			}
			require.NotNil(t, h.ends, "a read hold of %s never ends, but the lock does", owner)
			// Up to Redis 7.0 the clock runs on within a script.
			require.LessOrEqual(t, *h.ends, *m.ends+m.stall, "a read hold of %s outlasts the lock",
				owner)
		}
	}
}

func (m *readWriteModel) read(t *rapid.T, owner string, waits bool) {
	waited := rapid.Bool().Draw(t, "waited")
	number, lease := evenly(1, 2).Draw(t, "number"), leases.Draw(t, "lease")
	var holder *lua.Holder
	m.step(t, func() {
		var err error
		holder, err = m.lock.AcquireRead(t.Context(), m, owner, number, lease, waits, waited)
		require.NoError(t, err)
	}, func() {
		m.requireHolder(t, m.asksToRead(owner, number, lease, waits, waits && waited), holder)
	})
}

func (m *readWriteModel) readAgain(t *rapid.T) {
	owner, lease := ours.Draw(t, "owner"), leases.Draw(t, "lease")
	number := 1 // as in the library: one more than it has
	if r := m.readers[owner]; r != nil {
		number = len(r.holds) + 1
	}
	var ok bool
	m.step(t, func() {
		var err error
		ok, err = lua.Reenter(t.Context(), m, lua.Held{Lock: m.lock.Lock, Owner: owner, Read: true},
			number, lease)
		require.NoError(t, err)
	}, func() {
		require.Equal(t, m.reads(owner), ok)
		if ok {
			m.takeRead(owner, number, lease)
		}
	})
}

func (m *readWriteModel) stopReading(t *rapid.T) {
	owner, number := ours.Draw(t, "owner"), 0
	if r := m.readers[owner]; r != nil {
		number = rapid.IntRange(0, len(r.holds)).Draw(t, "number")
	}
	var out lua.Released
	m.step(t, func() {
		var err error
		out, err = m.lock.ReleaseRead(t.Context(), m, owner, number)
		require.NoError(t, err)
	}, func() {
		lasts := m.reads(owner)
		require.Equal(t, lua.Released{Held: lasts}, out)
		if number == 0 {
			m.leaveRead(owner)
		} else if lasts {
			// The reply does not say which holds were released: the longest stays.
			r := m.readers[owner]
			ends, _ := longest(r)
			r.holds = r.holds[:number]
			r.holds[number-1] = &held{ends}
		}
	})
}

func (m *readWriteModel) write(t *rapid.T, owner string, waits bool) {
	number, lease := evenly(1, 2).Draw(t, "number"), leases.Draw(t, "lease")
	var holder *lua.Holder
	m.step(t, func() {
		var err error
		holder, err = m.lock.AcquireWrite(t.Context(), m, owner, number, lease, waits)
		require.NoError(t, err)
	}, func() { m.requireHolder(t, m.asksToWrite(owner, number, lease, waits), holder) })
}

func (m *readWriteModel) writeAgain(t *rapid.T) {
	owner, lease := ours.Draw(t, "owner"), leases.Draw(t, "lease")
	number := evenly(1, 2, 3).Draw(t, "number")
	var ok bool
	m.step(t, func() {
		var err error
		ok, err = lua.Reenter(t.Context(), m, lua.Held{Lock: lock, Owner: lua.WriteField(owner)},
			number, lease)
		require.NoError(t, err)
	}, func() {
		require.Equal(t, m.writer == owner, ok)
		if ok {
			m.writes = number
			m.last(lease, false)
		}
	})
}

func (m *readWriteModel) stopWriting(t *rapid.T, owner string, number int) {
	var out lua.Released
	m.step(t, func() {
		var err error
		out, err = m.lock.ReleaseWrite(t.Context(), m, owner, number, "", 0)
		require.NoError(t, err)
	}, func() {
		want := lua.Released{Held: m.writer == owner}
		switch {
		case number == 0:
			want = m.leaveWrite(owner)
		case want.Held:
			m.writes = number
		}
		require.Equal(t, want, out)
	})
}

func (m *readWriteModel) forceOut(t *rapid.T) {
	mode := evenly("read", "write").Draw(t, "mode")
	var out lua.Released
	m.step(t, func() {
		var err error
		out, err = m.lock.ForceUnlock(t.Context(), m, mode)
		require.NoError(t, err)
	}, func() {
		require.Equal(t, lua.Released{Held: m.mode == mode}, out)
		if out.Held {
			m.free()
			m.announce("1")
		}
	})
}

func (m *readWriteModel) renewReads(t *rapid.T) {
	lease := leases.Draw(t, "lease")
	renewals := []lua.Held{
		{Lock: lock, Owner: anna, Read: true},
		{Lock: "another", Owner: anna, Read: true},
		{Lock: lock, Owner: bert, Read: true},
		{Lock: lock, Owner: cleo, Read: true},
	}
	var renewed []bool
	m.step(t, func() {
		var err error
		renewed, err = lua.Renew(t.Context(), m, lease, renewals)
		require.NoError(t, err)
	}, func() {
		for i, renewal := range renewals {
			require.Equal(t, renewal.Lock == lock && m.reads(renewal.Owner), renewed[i], "%v",
				renewal)
			if !renewed[i] {
				continue
			}
			m.last(lease, false)
			for _, h := range m.readers[renewal.Owner].holds {
				if h != nil {
					h.ends = later(h.ends, instant(m.now+lease.Milliseconds()))
				}
			}
		}
	})
}

func (m *readWriteModel) renewWrites(t *rapid.T) {
	lease := leases.Draw(t, "lease")
	renewals := []lua.Held{
		{Lock: lock, Owner: lua.WriteField(anna)},
		{Lock: lock, Owner: lua.WriteField(bert)},
	}
	var renewed []bool
	m.step(t, func() {
		var err error
		renewed, err = lua.Renew(t.Context(), m, lease, renewals)
		require.NoError(t, err)
	}, func() {
		for i, owner := range []string{anna, bert} {
			require.Equal(t, m.writer == owner, renewed[i], owner)
			if renewed[i] {
				m.last(lease, false)
			}
		}
	})
}

func (m *readWriteModel) inspect(t *rapid.T) {
	var state lua.State
	m.step(t, func() {
		var err error
		state, err = lua.Inspect(t.Context(), m, lock)
		require.NoError(t, err)
	}, func() {
		var want []lua.Hold
		for owner, r := range m.readers {
			want = append(want, lua.Hold{Owner: owner, Count: len(r.holds)})
		}
		if m.writer != "" {
			want = append(want, lua.Hold{Owner: m.writer, Count: m.writes, Write: true})
		}
		require.ElementsMatch(t, want, state.Holds)
		require.Equal(t, m.mode, state.Mode)
	})
}
