package rlocktest

import (
	"fmt"
	"maps"
	"slices"

	"holdfast/internal/owner"
)

// used says as which kind of lock a name was used.
type used struct {
	kind  owner.Kind // by the first hold
	site  string     // where that was acquired
	mixed string     // describes the first hold of another kind; "" if there was none
}

// use records the kind of the lock of a hold. Called with mu held.
func (hs *holds) use(a *acquired) {
	name, kind := a.hold.Name(), owner.KindOf(a.hold.Owner())
	u := hs.kinds[name]
	switch {
	case kind == owner.Unknown: // not a lock of this library
	case u == nil:
		hs.kinds[name] = &used{kind: kind, site: a.site}
	case u.kind != kind && u.mixed == "":
		u.mixed = fmt.Sprintf("lock %q: used as two kinds of lock: as a %s lock%s and as a %s lock%s",
			name, u.kind, at(u.site), kind, at(a.site))
	}
}

// mixedKinds describes the names that were used for two kinds of lock.
func (hs *holds) mixedKinds() []string {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	var mixed []string
	for _, name := range slices.Sorted(maps.Keys(hs.kinds)) {
		if text := hs.kinds[name].mixed; text != "" {
			mixed = append(mixed, text+"; use one kind of lock for one name")
		}
	}
	return mixed
}
