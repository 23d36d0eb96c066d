package suite

import (
	"strconv"

	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
)

// Kind is what a test must know of a kind of lock, so that one test serves all kinds.
type Kind struct {
	Name string
	// New makes the lock of a name, as a party sees it.
	New func(p *Party, name string) rlock.Locker
	// Contender makes the lock that keeps other owners out of the one that New makes. Usually it is
	// the same; for a read lock, it is the write lock.
	Contender func(p *Party, name string) rlock.Locker
	// Shared is set if any number of owners may hold the lock at once, and ContendersShare if they
	// may hold the contender.
	Shared, ContendersShare bool
	// Flat is set if an owner that holds the lock cannot acquire it again.
	Flat bool
	// Fenced is set if holds have a token.
	Fenced bool
	// Masters is the number of independent masters that the lock needs.
	Masters int
}

// one makes a kind of lock that one client makes.
func one(name string, lock, contender func(*rlock.Client, string) *rlock.Lock) Kind {
	on := func(lock func(*rlock.Client, string) *rlock.Lock) func(*Party, string) rlock.Locker {
		return func(p *Party, name string) rlock.Locker { return lock(p.Client, name) }
	}
	return Kind{Name: name, New: on(lock), Contender: on(contender), Masters: 1}
}

func read(c *rlock.Client, name string) *rlock.Lock  { return c.NewReadWriteLock(name).Read() }
func write(c *rlock.Client, name string) *rlock.Lock { return c.NewReadWriteLock(name).Write() }

// Single returns the kinds of locks of package rlock.
func Single() []Kind {
	plain := (*rlock.Client).NewLock
	fair := (*rlock.Client).NewFairLock
	fenced := (*rlock.Client).NewFencedLock
	flat := (*rlock.Client).NewNonReentrantLock
	flatFair := (*rlock.Client).NewNonReentrantFairLock
	kinds := []Kind{
		one("plain", plain, plain),
		one("fair", fair, fair),
		one("read", read, write),
		one("write", write, write),
		one("write-behind-readers", write, read),
		one("fenced", fenced, fenced),
		one("nonreentrant", flat, flat),
		one("nonreentrant-fair", flatFair, flatFair),
	}
	for i := range kinds {
		k := &kinds[i]
		k.Shared = k.Name == "read"
		k.ContendersShare = k.Name == "write-behind-readers"
		k.Fenced = k.Name == "fenced"
		k.Flat = k.Name == "nonreentrant" || k.Name == "nonreentrant-fair"
	}
	return kinds
}

// Multi returns the MultiLock of three plain locks.
func Multi() Kind {
	lock := func(p *Party, name string) rlock.Locker {
		var parts []rlock.Locker
		for i := range 3 {
			parts = append(parts, p.Client.NewLock(name+":"+strconv.Itoa(i+1)))
		}
		return multilock.New(parts...)
	}
	return Kind{Name: "multilock", New: lock, Contender: lock, Masters: 1}
}

// Quorum returns the RedLock on three masters.
func Quorum() Kind {
	lock := func(p *Party, name string) rlock.Locker {
		// The masters have just been started, and nothing restarts them.
		options := redlock.Options{FsyncAlways: true, NodeTimeout: p.NodeTimeout}
		return redlock.NewOn(name, options, p.Clients...)
	}
	return Kind{Name: "redlock", New: lock, Contender: lock, Masters: 3}
}
