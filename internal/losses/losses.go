// Package losses remembers lost acquisitions until they are unlocked, so that Unlock without a hold
// returns the loss, no matter which goroutine noticed the loss first.
package losses

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// Most is how many values a Memory keeps, because some callers never unlock a lost lock.
const Most = 1024

// Memory keeps values by key, the newest [Most] of them. The zero value is empty and ready for use.
// It is safe for concurrent use.
type Memory[K, V comparable] struct {
	// size is the number of entries. Every acquisition reads size without mu, because losses are rare.
	size atomic.Int32

	mu    sync.RWMutex
	byKey map[K][]*list.Element // oldest first; guarded by mu
	all   list.List             // of entry[K, V], oldest first; guarded by mu
}

type entry[K, V comparable] struct {
	key   K
	value V
}

// Add keeps a value. If there are [Most] values already, Add forgets the oldest.
func (m *Memory[K, V]) Add(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all.Len() == Most {
		m.remove(m.all.Front().Value.(entry[K, V]).key, func(i int, _ V) bool { return i == 0 })
	}
	if m.byKey == nil {
		m.byKey = make(map[K][]*list.Element)
	}
	m.byKey[key] = append(m.byKey[key], m.all.PushBack(entry[K, V]{key, value}))
	m.size.Store(int32(m.all.Len()))
}

// Of returns the values of a key, oldest first; nil if there are none.
func (m *Memory[K, V]) Of(key K) (values []V) {
	if m.size.Load() == 0 {
		return nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, e := range m.byKey[key] {
		values = append(values, e.Value.(entry[K, V]).value)
	}
	return values
}

// Remove forgets a value, if it is there.
func (m *Memory[K, V]) Remove(key K, value V) {
	m.forget(key, func(_ int, v V) bool { return v == value })
}

// Forget forgets all values of a key. A loss that nobody unlocks stays for long, so the cost of
// later acquisitions must not depend on the number of losses.
func (m *Memory[K, V]) Forget(key K) { m.forget(key, func(int, V) bool { return true }) }

func (m *Memory[K, V]) forget(key K, matches func(int, V) bool) {
	if m.size.Load() == 0 || !m.has(key) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key, matches)
	m.size.Store(int32(m.all.Len()))
}

func (m *Memory[K, V]) has(key K) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.byKey[key] != nil
}

// remove removes the values of a key that match, with their index. Called with mu held.
func (m *Memory[K, V]) remove(key K, matches func(int, V) bool) {
	var kept []*list.Element
	for i, e := range m.byKey[key] {
		if matches(i, e.Value.(entry[K, V]).value) {
			m.all.Remove(e)
		} else {
			kept = append(kept, e)
		}
	}
	if kept == nil {
		delete(m.byKey, key)
	} else {
		m.byKey[key] = kept
	}
}
