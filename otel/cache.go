package holdfastotel

import (
	"maps"
	"sync"
	"sync/atomic"
)

// cache is a map that is read without a lock and without an allocation. Adding a key copies it, so
// it is for few keys that are used often. The zero value is empty. It is safe for concurrent use.
type cache[K comparable, V any] struct {
	mu   sync.Mutex // held while a key is added
	read atomic.Pointer[map[K]V]
}

// all returns the map, which must not be changed.
func (m *cache[K, V]) all() map[K]V {
	if p := m.read.Load(); p != nil {
		return *p
	}
	return nil
}

// get returns the value of a key, which build makes if there is none yet.
func (m *cache[K, V]) get(k K, build func(k K) V) V {
	if v, ok := m.all()[k]; ok {
		return v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.all()
	if v, ok := old[k]; ok {
		return v
	}
	v := build(k)
	next := maps.Clone(old)
	if next == nil {
		next = make(map[K]V)
	}
	next[k] = v
	m.read.Store(&next)
	return v
}
