//go:build redis

package lua_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

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
			hash[lua.WriteField(m.writer)] = strconv.Itoa(m.writes)
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
			text:   lua.WriteField(m.waiting.owner),
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
	} else if sleeps := m.now + lua.MaxNap.Milliseconds(); ends != nil && *ends < sleeps &&
		(before == nil || *ends < *before) {
		m.announce(message) // waiters went to sleep for longer
	}
}

func (m *readWriteModel) announce(text string) {
	m.told = append(m.told, message{"PUBLISH", lua.RWChannel(lock), text})
}

// left returns the rest of the lease of the lock.
func (m *readWriteModel) left() time.Duration {
	if m.ends == nil {
		return lua.NoExpiry
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
