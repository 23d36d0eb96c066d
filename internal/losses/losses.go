// Package losses remembers lost acquisitions that were not unlocked yet, so that Unlock without a
// hold returns the loss, no matter which goroutine noticed it first.
package losses

import (
	"container/list"
	"slices"
	"sync"
	"sync/atomic"
)

// Most is the largest number of values that a Memory keeps. It bounds what callers that never
// unlock a lost lock can pile up.
const Most = 1024

// Memory keeps values by key, the newest [Most] of them. The zero value is empty and ready for use.
// It is safe for concurrent use. Every acquisition checks it: an empty Memory costs one atomic
// load, and a full one a map lookup.
type Memory[K, V comparable] struct {
	size atomic.Int32

	mu    sync.Mutex
	all   list.List             // of entry[K, V], oldest first; guarded by mu
	byKey map[K][]*list.Element // guarded by mu; oldest first
}

type entry[K, V comparable] struct {
	key   K
	value V
}

// Add keeps a value, and forgets the oldest one if there are [Most] already.
func (m *Memory[K, V]) Add(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all.Len() == Most {
		m.remove(m.all.Front())
	}
	if m.byKey == nil {
		m.byKey = make(map[K][]*list.Element)
	}
	m.byKey[key] = append(m.byKey[key], m.all.PushBack(entry[K, V]{key, value}))
	m.size.Add(1)
}

// Of returns the values of a key, oldest first; nil if there are none.
func (m *Memory[K, V]) Of(key K) []V {
	if m.size.Load() == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var values []V
	for _, e := range m.byKey[key] {
		values = append(values, e.Value.(entry[K, V]).value)
	}
	return values
}

// Remove forgets a value, if it is there.
func (m *Memory[K, V]) Remove(key K, value V) {
	m.removeIf(key, func(v V) bool { return v == value })
}

// Forget forgets all values of a key.
func (m *Memory[K, V]) Forget(key K) { m.removeIf(key, func(V) bool { return true }) }

func (m *Memory[K, V]) removeIf(key K, match func(V) bool) {
	if m.size.Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range slices.Clone(m.byKey[key]) {
		if match(e.Value.(entry[K, V]).value) {
			m.remove(e)
		}
	}
}

// remove forgets an element. mu must be held.
func (m *Memory[K, V]) remove(e *list.Element) {
	key := m.all.Remove(e).(entry[K, V]).key
	others := slices.DeleteFunc(m.byKey[key], func(other *list.Element) bool { return other == e })
	if m.byKey[key] = others; len(others) == 0 {
		delete(m.byKey, key)
	}
	m.size.Add(-1)
}
