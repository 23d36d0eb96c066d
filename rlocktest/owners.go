package rlocktest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"holdfast/rlock"
)

// The sections of one owner under one lock lie inside each other, like calls. A section is inside
// another if its context comes from that one's hold, if the same goroutine has entered both, or if
// the goroutine of the outer one has started that of the inner one, which it seems to wait for. Two
// sections beside each other were entered by goroutines that do not exclude each other.

// beside is two sections of one owner that were not inside each other.
type beside struct{ lock, first, second string }

// enter records which sections a is inside of, and which ones are beside it. hs.mu is held.
func (hs *holds) enter(a *acquired) {
	a.inside = make(map[*acquired]bool)
	others := hs.ofSameOwner(a)
	for _, other := range others {
		if watch.Inside(a.hold, other.hold) || other.goroutine == a.goroutine ||
			other.goroutine == a.creator {
			a.inside[other] = true
			maps.Copy(a.inside, other.inside)
		}
	}
	for _, other := range others {
		if !a.inside[other] {
			hs.foundBeside(other, a)
		}
	}
}

// leave records which sections of other goroutines outlast a, which they were inside of. hs.mu is
// held.
func (hs *holds) leave(a *acquired, reason error) {
	if !errors.Is(reason, rlock.ErrReleased) {
		return
	}
	for _, other := range hs.ofSameOwner(a) {
		if other.inside[a] && other.goroutine != a.goroutine {
			hs.foundBeside(a, other)
		}
	}
}

// ofSameOwner returns the other sections of the owner of a under the same lock, the oldest first.
// Those that are being released are over, and readers do not exclude each other anyway. hs.mu is
// held.
func (hs *holds) ofSameOwner(a *acquired) (others []*acquired) {
	for _, other := range hs.live {
		if other != a && other.hold.Owner() == a.hold.Owner() &&
			other.hold.Name() == a.hold.Name() && !watch.Releasing(other.hold) &&
			!watch.Share(other.hold, a.hold) {
			others = append(others, other)
		}
	}
	slices.SortFunc(others, byNumber)
	return others
}

func (hs *holds) foundBeside(first, second *acquired) {
	b := beside{first.hold.Name(), first.site, second.site}
	if !slices.Contains(hs.besides, b) {
		hs.besides = append(hs.besides, b)
	}
}

// sharedOwners describes the sections that were beside each other.
func (hs *holds) sharedOwners() (found []string) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, b := range hs.besides {
		found = append(found, fmt.Sprintf("lock %q: held by two goroutines with the same owner, "+
			"so it did not exclude them: acquired%s and%s; start goroutines with "+
			"rlock.Detached(ctx), or wait for them and pass down Context() of the outer hold",
			b.lock, at(b.first), at(b.second)))
	}
	return found
}

// goroutines returns the number of this goroutine and of the one that has started it: the stack
// begins with "goroutine 7 [running]:" and ends with "created by main.main in goroutine 1", and its
// line. They serve the report about a test, and decide nothing in a program.
func goroutines() (this, creator string) {
	stack := make([]byte, 4096)
	n := runtime.Stack(stack, false)
	for ; n == len(stack); n = runtime.Stack(stack, false) {
		stack = make([]byte, 2*len(stack))
	}
	first, rest, _ := bytes.Cut(stack[:n], []byte(" ["))
	if _, by, found := bytes.Cut(rest, []byte("\ncreated by ")); found {
		by, _, _ = bytes.Cut(by, []byte("\n"))
		if i := bytes.LastIndex(by, []byte(" in goroutine ")); i >= 0 {
			creator = string(by[i+len(" in "):])
		}
	}
	return string(first), creator
}
