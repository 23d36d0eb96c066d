package measure

import "runtime"

// Memory is what a process uses.
type Memory struct {
	Mallocs    uint64 `json:"mallocs"` // so far, including freed ones
	Live       uint64 `json:"live"`    // bytes of heap and stacks in use
	Goroutines int    `json:"goroutines"`
}

// MemoryNow returns what this process uses. It stops the world for a moment and does not collect
// garbage: see Settled.
func MemoryNow() Memory {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Memory{Mallocs: m.Mallocs, Live: m.HeapAlloc + m.StackInuse,
		Goroutines: runtime.NumGoroutine()}
}

// Settled returns MemoryNow after garbage is collected and stacks have shrunk.
func Settled() Memory {
	// Each collection shrinks a mostly empty stack once.
	for range 3 {
		runtime.GC()
	}
	return MemoryNow()
}
