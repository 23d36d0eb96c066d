//go:build redis

package lua_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/internal/wire"
	"holdfast/lua"
)

// The keys of a read-write lock beside the lock itself and the read holds.
const (
	writerName = "holdfast_rwlock_writer:{" + lock + "}"
	readerName = "holdfast_rwlock_reader:{" + lock + "}"
	passName   = "holdfast_rwlock_turn:{" + lock + "}"
)

// What readers and writers of this library promise each other: when a waiter that stops asking is
// forgotten, and how long the turn of readers lasts after a writer has left.
const (
	forgotten   = 7 * time.Second
	readersTurn = 100 * time.Millisecond
	afterTurn   = 10 * time.Millisecond // when the last reader has left
)

// readWriteModel is the model of a read-write lock.
type readWriteModel struct {
	*program
	lock lua.ReadWrite

	mode    string
	writer  string // "" when there is none
	writes  int
	readers map[string]*reading
	ends    *int64 // of the hash

	waiting *waitingWriter
	row     *int64 // until when readers wait
	turn    *int64 // until when readers that waited have their turn
}

// reading is the read holds of one owner, with their ends. A nil end is never; a nil hold has
// ended.
type reading struct{ holds []*held }

type held struct{ ends *int64 }

// waitingWriter is the writer for which new readers step back.
type waitingWriter struct {
	owner       string
	since, ends *int64
}

func newReadWrite(p *program, bound time.Duration) *readWriteModel {
	m := &readWriteModel{
		program: p,
		lock:    lua.ReadWrite{Lock: lock, Bound: bound},
		readers: map[string]*reading{},
	}
	p.model = m
	return m
}

func holdName(owner string, i int) string {
	return "{" + lock + "}:" + owner + ":rwlock_timeout:" + strconv.Itoa(i+1)
}

func (m *readWriteModel) want() keyspace {
	k := keyspace{}
	if m.mode != "" {
		hash := map[string]string{"mode": m.mode}
		if m.writer != "" {
			hash[wire.WriteField(m.writer)] = strconv.Itoa(m.writes)
		}
		for owner, r := range m.readers {
			hash[owner] = strconv.Itoa(len(r.holds))
			for i, h := range r.holds {
				if h != nil {
					k[holdName(owner, i)] = entry{text: "1", ends: h.ends}
				}
			}
		}
		k[lock] = entry{hash: hash, ends: m.ends}
	}
	if m.waiting != nil {
		k[writerName] = entry{
			text:   wire.WriteField(m.waiting.owner),
			stamps: []*int64{m.waiting.since},
			ends:   m.waiting.ends,
		}
	}
	if m.row != nil {
		k[readerName] = entry{text: "1", ends: m.row}
	}
	if m.turn != nil {
		k[passName] = entry{text: "1", ends: m.turn}
	}
	return k
}

// limits returns when readers no longer step back, and when they do so again.
func (m *readWriteModel) limits() []int64 {
	if m.waiting == nil {
		return nil
	}
	bound := m.lock.Bound.Milliseconds()
	return []int64{*m.waiting.since + bound, *m.waiting.since + bound*11/10}
}

func over(ends *int64, now int64) bool { return ends != nil && *ends <= now }

func (m *readWriteModel) expire(now int64) {
	for _, r := range m.readers {
		for i, h := range r.holds {
			if h != nil && over(h.ends, now) {
				r.holds[i] = nil
			}
		}
	}
	if m.mode != "" && over(m.ends, now) {
		m.free()
	}
	if m.waiting != nil && over(m.waiting.ends, now) {
		m.waiting = nil
	}
	if over(m.row, now) {
		m.row = nil
	}
	if over(m.turn, now) {
		m.turn = nil
	}
}

func (m *readWriteModel) free() {
	m.mode, m.writer, m.writes, m.ends = "", "", 0, nil
	clear(m.readers)
}

// later returns the later of two ends; nil is never.
func later(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return instant(max(*a, *b))
}

// longest returns the end of the longest of all the holds; ok is false if none lasts.
func longest(all ...*reading) (ends *int64, ok bool) {
	for _, r := range all {
		for _, h := range r.holds {
			switch {
			case h == nil:
			case !ok:
				ends, ok = h.ends, true
			default:
				ends = later(ends, h.ends)
			}
		}
	}
	if ends != nil {
		ends = instant(*ends)
	}
	return ends, ok
}

// last makes the hash last for the lease at least.
func (m *readWriteModel) last(lease time.Duration, taken bool) {
	end := instant(m.now + lease.Milliseconds())
	if !taken {
		end = later(m.ends, end)
	}
	m.ends = end
}

// takeRead gives an owner the hold with a number, for at least the lease, and leaves those below
// it. If there were holds above, this one gets the longest lease of them.
func (m *readWriteModel) takeRead(owner string, number int, lease time.Duration) {
	taken := m.mode == ""
	if taken {
		m.mode = "read"
	}
	m.last(lease, taken)
	r := m.readers[owner]
	if r == nil {
		r = &reading{}
		m.readers[owner] = r
	}
	for len(r.holds) < number {
		r.holds = append(r.holds, nil)
	}
	end := instant(m.now + lease.Milliseconds())
	if ends, ok := longest(r); ok && ends != nil && len(r.holds) > number {
		end = later(end, ends)
	}
	r.holds = r.holds[:number]
	if h := r.holds[number-1]; h != nil {
		end = later(h.ends, end)
	}
	r.holds[number-1] = &held{end}
}

// reads reports whether an owner has a read hold that lasts.
func (m *readWriteModel) reads(owner string) bool {
	r := m.readers[owner]
	if r == nil {
		return false
	}
	_, ok := longest(r)
	return ok
}

// leaveRead removes all read holds of an owner. It reports whether one of them lasted.
func (m *readWriteModel) leaveRead(owner string) bool {
	known, held := m.readers[owner] != nil, m.reads(owner)
	delete(m.readers, owner)
	if known && m.mode == "read" {
		m.onlyReaders("0")
	}
	return held
}

// onlyReaders makes the lock last as long as the longest read hold, and forgets readers of this
// library that died. Without a hold the lock is free, unless Java read: it may do so still.
func (m *readWriteModel) onlyReaders(message string) {
	var all []*reading
	for owner, r := range m.readers {
		if owner == java && !m.reads(owner) {
			r = &reading{holds: []*held{{m.ends}}}
		} else if !m.reads(owner) {
			delete(m.readers, owner)
		}
		all = append(all, r)
	}
	before := m.ends
	ends, ok := longest(all...)
	if !ok {
		m.free()
		if end := m.now + afterTurn.Milliseconds(); message == "0" && m.turn != nil &&
			*m.turn > end {
			m.turn = instant(end)
		}
		m.announce(message)
		return
	}
	m.mode, m.writer, m.writes, m.ends = "read", "", 0, ends
	if message == "1" {
		m.announce(message)
	} else if sleeps := m.now + lua.LongestSleep.Milliseconds(); ends != nil && *ends < sleeps &&
		(before == nil || *ends < *before) {
		m.announce(message) // waiters went to sleep for longer
	}
}

func (m *readWriteModel) announce(text string) {
	m.told = append(m.told, message{"PUBLISH", wire.RWChannel(lock), text})
}

// left returns the rest of the lease of the lock.
func (m *readWriteModel) left() time.Duration {
	if m.ends == nil {
		return wire.NoExpiry
	}
	return time.Duration(*m.ends-m.now) * time.Millisecond
}

// holder returns one of the holders.
func (m *readWriteModel) holder() *lua.Holder {
	owners := slices.Collect(maps.Keys(m.readers))
	if m.writer != "" {
		owners = append(owners, m.writer)
	}
	return &lua.Holder{Owner: strings.Join(owners, " "), TTL: m.left()}
}

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
	sleep := min(*m.waiting.since+m.lock.Bound.Milliseconds(), *m.waiting.ends) - m.now
	if sleep <= 0 {
		return nil
	}
	return &lua.Holder{
		Owner: m.waiting.owner,
		Next:  true,
		Sleep: time.Duration(sleep) * time.Millisecond,
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
		return &lua.Holder{Next: true, Sleep: time.Duration(*m.turn-m.now) * time.Millisecond}
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

func TestReadWriteLockAgreesWithItsModel(t *testing.T) {
	checkModel(t, func(_ *rapid.T, p *program) actions { return newReadWrite(p, lease).actions() })
}

func TestReadWriteLockWithoutPrecedenceAgreesWithItsModel(t *testing.T) {
	checkModel(t, func(_ *rapid.T, p *program) actions { return newReadWrite(p, 0).actions() })
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
		m.pass(t, lua.LongestSleep)
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
	attempt(t, m.program, func() (*lua.Holder, error) {
		return m.lock.AcquireRead(t.Context(), m, owner, number, lease, waits, waited)
	}, func(holder *lua.Holder) {
		m.requireHolder(t, m.asksToRead(owner, number, lease, waits, waits && waited), holder)
	})
}

func (m *readWriteModel) readAgain(t *rapid.T) {
	owner, lease := ours.Draw(t, "owner"), leases.Draw(t, "lease")
	most := 1 // in the library one more than it has; fewer if the command comes late
	if r := m.readers[owner]; r != nil {
		most = len(r.holds) + 1
	}
	number := rapid.IntRange(1, most).Draw(t, "number")
	attempt(t, m.program, func() (bool, error) {
		return lua.Reenter(t.Context(), m, lua.Held{Lock: m.lock.Lock, Owner: owner, Read: true},
			number, lease)
	}, func(ok bool) {
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
	attempt(t, m.program, func() (lua.Released, error) {
		return m.lock.ReleaseRead(t.Context(), m, owner, number)
	}, func(out lua.Released) {
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
	attempt(t, m.program, func() (*lua.Holder, error) {
		return m.lock.AcquireWrite(t.Context(), m, owner, number, lease, waits)
	}, func(holder *lua.Holder) {
		m.requireHolder(t, m.asksToWrite(owner, number, lease, waits), holder)
	})
}

func (m *readWriteModel) writeAgain(t *rapid.T) {
	owner, lease := ours.Draw(t, "owner"), leases.Draw(t, "lease")
	number := evenly(1, 2, 3).Draw(t, "number")
	attempt(t, m.program, func() (bool, error) {
		return lua.Reenter(t.Context(), m, lua.Held{Lock: lock, Owner: wire.WriteField(owner)},
			number, lease)
	}, func(ok bool) {
		require.Equal(t, m.writer == owner, ok)
		if ok {
			m.writes = number
			m.last(lease, false)
		}
	})
}

func (m *readWriteModel) stopWriting(t *rapid.T, owner string, number int) {
	attempt(t, m.program, func() (lua.Released, error) {
		return m.lock.ReleaseWrite(t.Context(), m, owner, number, "", 0)
	}, func(out lua.Released) {
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
	attempt(t, m.program, func() (lua.Released, error) {
		return m.lock.ForceUnlock(t.Context(), m, mode)
	}, func(out lua.Released) {
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
	attempt(t, m.program, func() ([]bool, error) {
		return lua.Renew(t.Context(), m, lease, renewals)
	}, func(renewed []bool) {
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
		{Lock: lock, Owner: wire.WriteField(anna)},
		{Lock: lock, Owner: wire.WriteField(bert)},
	}
	attempt(t, m.program, func() ([]bool, error) {
		return lua.Renew(t.Context(), m, lease, renewals)
	}, func(renewed []bool) {
		for i, owner := range []string{anna, bert} {
			require.Equal(t, m.writer == owner, renewed[i], owner)
			if renewed[i] {
				m.last(lease, false)
			}
		}
	})
}

func (m *readWriteModel) inspect(t *rapid.T) {
	attempt(t, m.program, func() (lua.State, error) {
		return lua.Inspect(t.Context(), m, lock)
	}, func(state lua.State) {
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

// javaReads takes a read lock, or one more, as Redisson does. It knows no precedence.
func (m *readWriteModel) javaReads(t *rapid.T) {
	lease := leases.Draw(t, "lease")
	m.plainly(t, func() [][]string {
		if m.mode == "write" && m.writer != java {
			return nil
		}
		number := 1
		if r := m.readers[java]; r != nil {
			number = len(r.holds) + 1
		}
		m.takeRead(java, number, lease)
		javaHold := []string{
			"SET",
			holdName(java, number-1),
			"1",
			"PXAT",
			strconv.FormatInt(m.now+lease.Milliseconds(), 10),
		}
		commands := [][]string{{"HSET", lock, "mode", m.mode, java, strconv.Itoa(number)}, javaHold}
		return append(commands, m.javaLasts()...)
	})
}

// javaLasts sets the TTL of the hash to what the model says.
func (m *readWriteModel) javaLasts() [][]string {
	if m.ends == nil {
		return [][]string{{"PERSIST", lock}}
	}
	return [][]string{{"PEXPIREAT", lock, strconv.FormatInt(*m.ends, 10)}}
}

// javaStopsReading releases the last read hold of the owner.
func (m *readWriteModel) javaStopsReading(t *rapid.T) {
	m.plainly(t, func() [][]string {
		r := m.readers[java]
		if r == nil {
			return nil
		}
		n := len(r.holds) - 1
		r.holds = r.holds[:n]
		commands := [][]string{{"DEL", holdName(java, n)}, {"HINCRBY", lock, java, "-1"}}
		if n == 0 {
			delete(m.readers, java)
			commands = append(commands, []string{"HDEL", lock, java})
		}
		if m.mode == "write" {
			return commands
		}
		return append(commands, m.javaLeaves()...)
	})
}

// javaLeaves keeps the lock for the longest read hold, and deletes it if there is none. It does not
// forget readers that died.
func (m *readWriteModel) javaLeaves() [][]string {
	var all []*reading
	for _, r := range m.readers {
		all = append(all, r)
	}
	ends, ok := longest(all...)
	if !ok {
		m.free()
		return [][]string{{"DEL", lock}, {"PUBLISH", wire.RWChannel(lock), "0"}}
	}
	m.ends = ends
	return m.javaLasts()
}

func (m *readWriteModel) javaWrites(t *rapid.T) {
	lease := leases.Draw(t, "lease")
	m.plainly(t, func() [][]string {
		if m.mode != "" && m.writer != java {
			return nil
		}
		taken := m.mode == ""
		m.mode, m.writer = "write", java
		m.writes++
		m.last(lease, taken)
		return append(
			[][]string{{"HSET", lock, "mode", "write", wire.WriteField(java), strconv.Itoa(m.writes)}},
			m.javaLasts()...)
	})
}

// javaStopsWriting keeps reading if the owner has read holds.
func (m *readWriteModel) javaStopsWriting(t *rapid.T) {
	m.plainly(t, func() [][]string {
		if m.writer != java {
			return nil
		}
		m.writer, m.writes = "", 0
		commands := [][]string{{"HDEL", lock, wire.WriteField(java)}}
		if m.reads(java) {
			m.mode = "read"
			commands = append(commands, []string{"HSET", lock, "mode", "read"})
			return append(commands, m.javaLeaves()...)
		}
		m.free()
		return append(commands, []string{"DEL", lock}, []string{"PUBLISH", wire.RWChannel(lock), "1"})
	})
}
