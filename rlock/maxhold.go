package rlock

import (
	"fmt"
	"time"
)

// age says how much of Options.MaxHold an acquisition has used. It only grows.
type age uint8

const (
	young   age = iota
	halfway     // half of it, which was logged
	spent       // all of it, or what is left is less than a lease: it is not renewed any more
)

// MayRenew reports whether the watchdog may renew the acquisition once more: with a lease from now
// it does not last longer than Options.MaxHold. It warns when half of that is over.
func (a *acquisition) MayRenew() bool {
	most := a.client.options.MaxHold
	if most == 0 {
		return true
	}
	held := time.Since(*a.began)
	a.mu.Lock()
	before := a.age
	switch {
	case held > most-a.client.options.WatchdogLease:
		a.age = spent
		a.unrenewed = fmt.Errorf("it was held for Options.MaxHold, %v, and not renewed beyond that", most)
	case held >= most/2:
		a.age = halfway
	}
	warn, spent := before == young && a.age != young && len(a.levels) > 0, a.age == spent
	var site callSite
	if warn {
		site = a.levels[0].site
	}
	a.mu.Unlock()
	if warn {
		a.client.warn("holdfast: a lock has been held for half of Options.MaxHold, at the end of "+
			"which it is lost", "lock", a.lock.name, "owner", a.owner,
			"held", held.Round(time.Millisecond), "max", most, "stack", site.stack())
	}
	return !spent
}
