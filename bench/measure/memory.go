package measure

import "runtime"

// Memory is what a process uses.
type Memory struct {
	Mallocs    uint64 `json:"mallocs"` // so far, freed ones too
	Live       uint64 `json:"live"`    // bytes of heap in use, and of stacks
	Goroutines int    `json:"goroutines"`
}

// MemoryNow reads what this process uses. It stops the world for a moment, and does not collect garbage: see Settled.
func MemoryNow() Memory {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Memory{Mallocs: m.Mallocs, Live: m.HeapAlloc + m.StackInuse, Goroutines: runtime.NumGoroutine()}
}

// Settled is MemoryNow after the garbage is collected, and stacks have shrunk to what they need.
func Settled() Memory {
	// A stack is shrunk by the collection that finds it mostly empty, once at a time.
	for range 3 {
		runtime.GC()
	}
	return MemoryNow()
}
