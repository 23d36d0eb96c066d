package rlock

// overlapping returns a level that was acquired after l and is not being released, unless the
// acquisition has ended. It is called with mu held.
//
// Nested sections end in the opposite order of their beginning. If l ends first, two callers were
// inside at once: goroutines that share an owner, which do not exclude each other.
func (a *acquisition) overlapping(l *level) *level {
	n := len(a.levels)
	if a.state != active || n == 0 || a.levels[n-1] == l || a.lock.mode == sharedMode {
		return nil
	}
	if last := a.levels[n-1]; !last.unlocked.Load() {
		return last
	}
	return nil
}

// reportOverlap logs, once per client, that two levels of an owner overlapped without being nested.
func (a *acquisition) reportOverlap(l, other *level) {
	c := a.client
	if !c.overlapped.CompareAndSwap(false, true) {
		return
	}
	c.warn("holdfast: two callers with one owner were inside a lock at the same time, one of them "+
		"beyond the other's end: goroutines that share an owner do not exclude each other; give "+
		"each its own context, by rlock.Detached or without rlock.WithOwner",
		"lock", a.lock.name, "owner", a.owner,
		"first", l.site.acquiredAt(), "second", other.site.acquiredAt())
}
