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
	// Fair is set if waiters queue in Redis, and not in their process.
	Fair bool
	// HandsOver is set if a release grants the lock to a waiter of any process.
	HandsOver bool
	// Detaches is set if a hold can go on in another process.
	Detaches bool
	// Masters is the number of independent masters that the lock needs.
	Masters int
}

// single completes a kind of lock that one client makes.
func (k Kind) single(lock, contender func(*rlock.Client, string) *rlock.Lock) Kind {
	on := func(lock func(*rlock.Client, string) *rlock.Lock) func(*Party, string) rlock.Locker {
		return func(p *Party, name string) rlock.Locker { return lock(p.Client, name) }
	}
	k.New, k.Contender, k.Masters = on(lock), on(contender), 1
	return k
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
	return []Kind{
		Kind{Name: "plain", HandsOver: true, Detaches: true}.single(plain, plain),
		Kind{Name: "fair", Fair: true, Detaches: true}.single(fair, fair),
		Kind{Name: "read", Shared: true}.single(read, write),
		Kind{Name: "write"}.single(write, write),
		Kind{Name: "write-behind-readers", ContendersShare: true}.single(write, read),
		Kind{Name: "fenced", Fenced: true, HandsOver: true, Detaches: true}.single(fenced, fenced),
		Kind{Name: "nonreentrant", Flat: true, HandsOver: true, Detaches: true}.single(flat, flat),
		Kind{Name: "nonreentrant-fair", Flat: true, Fair: true, Detaches: true}.
			single(flatFair, flatFair),
	}
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
