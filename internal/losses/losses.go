// Package losses remembers lost acquisitions that were not unlocked yet, so that Unlock without a
// hold returns the loss, no matter which goroutine noticed it first.
package losses

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Most is how many values a Memory keeps, whatever callers do that never unlock a lost lock.
const Most = 1024

// Memory keeps values by key, the newest [Most] of them. The zero value is empty and ready for use.
// It is safe for concurrent use.
type Memory[K, V comparable] struct {
	// size is the number of entries. It is read without mu, because every acquisition checks it,
	// and losses are rare.
	size atomic.Int32

	mu      sync.Mutex
	entries []entry[K, V] // oldest first; guarded by mu
}

type entry[K, V comparable] struct {
	key   K
	value V
}

// Add keeps a value, and forgets the oldest one if there are [Most] already.
func (m *Memory[K, V]) Add(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.entries) == Most {
		m.entries = slices.Delete(m.entries, 0, 1)
	}
	m.entries = append(m.entries, entry[K, V]{key, value})
	m.size.Store(int32(len(m.entries)))
}

// Of returns the values of a key, oldest first; nil if there are none.
func (m *Memory[K, V]) Of(key K) (values []V) {
	if m.size.Load() == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		if e.key == key {
			values = append(values, e.value)
		}
	}
	return values
}

// Remove forgets a value, if it is there.
func (m *Memory[K, V]) Remove(key K, value V) {
	m.forget(func(e entry[K, V]) bool { return e == entry[K, V]{key, value} })
}

// Forget forgets all values of a key.
func (m *Memory[K, V]) Forget(key K) { m.forget(func(e entry[K, V]) bool { return e.key == key }) }

func (m *Memory[K, V]) forget(matches func(entry[K, V]) bool) {
	if m.size.Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = slices.DeleteFunc(m.entries, matches)
	m.size.Store(int32(len(m.entries)))
}
