// Package losses remembers lost acquisitions that were not unlocked yet, so that Unlock without a
// hold returns the loss, no matter which goroutine noticed it first.
package losses

import (
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
	all   []entry[K, V] // oldest first; guarded by mu
	byKey map[K][]V     // the same values; guarded by mu
}

type entry[K, V comparable] struct {
	key   K
	value V
}

// Add keeps a value, and forgets the oldest one if there are [Most] already.
func (m *Memory[K, V]) Add(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) == Most {
		m.remove(m.all[0].key, m.all[0].value)
	}
	if m.byKey == nil {
		m.byKey = make(map[K][]V)
	}
	m.all = append(m.all, entry[K, V]{key, value})
	m.byKey[key] = append(m.byKey[key], value)
	m.size.Add(1)
}

// Of returns the values of a key, oldest first; nil if there are none.
func (m *Memory[K, V]) Of(key K) []V {
	if m.size.Load() == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.byKey[key])
}

// Remove forgets a value, if it is there.
func (m *Memory[K, V]) Remove(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key, value)
}

// Forget forgets all values of a key.
func (m *Memory[K, V]) Forget(key K) {
	for _, value := range m.Of(key) {
		m.Remove(key, value)
	}
}

// remove forgets a value. mu must be held.
func (m *Memory[K, V]) remove(key K, value V) {
	i := slices.Index(m.all, entry[K, V]{key, value})
	if i < 0 {
		return
	}
	m.all = slices.Delete(m.all, i, i+1)
	i = slices.Index(m.byKey[key], value)
	m.byKey[key] = slices.Delete(m.byKey[key], i, i+1)
	if len(m.byKey[key]) == 0 {
		delete(m.byKey, key)
	}
	m.size.Add(-1)
}
