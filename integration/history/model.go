package history

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// step is one operation of porcupine's: a level is acquired or ends, or the servers may forget the
// token. It is comparable.
type step struct {
	verb verb
	part part
	// anyToken allows any token: the servers may have forgotten the last one at that time.
	anyToken bool

	before *state // for begin, with name
	name   string
}

type verb string

const (
	acquire verb = "acquire"
	end     verb = "end"
	forget  verb = "forget"
	begin   verb = "begin" // with what went before; only in pictures, as the next two
	open    verb = "open"  // with an unknown state
	call    verb = "call"  // that was not granted
)

// String describes the operation in the picture.
func (s step) String() string {
	switch {
	case s.verb == begin:
		return fmt.Sprintf("%q is %v", s.name, s.before)
	case s.verb == open:
		return fmt.Sprintf("%q: what is drawn begins", s.name)
	case s.verb == call:
		return fmt.Sprintf("%v: %s", s.part.Acquisition,
			strings.TrimSuffix(cmp.Or(string(s.part.Outcome), "no answer")+", "+s.part.Error, ", "))
	case s.verb == forget:
		return "the servers may forget the token"
	case s.verb == end:
		how := string(s.part.Release)
		if s.part.Release != Released {
			how = strings.TrimSuffix("lost, "+how, ", ")
		}
		return fmt.Sprintf("%v: ends (%s)", s.part.Acquisition, how)
	case s.part.Kind == Fenced:
		return fmt.Sprintf("%v: acquired with token %d", s.part.Acquisition, s.part.Token)
	default:
		return fmt.Sprintf("%v: acquired", s.part.Acquisition)
	}
}

// state is the state of a lock: its holders, and the last token. It is never changed, only
// replaced.
type state struct {
	holders  []holder // sorted by owner
	token    int64
	anyToken bool // the servers may have forgotten the last token
}

// holder is an owner and its levels.
type holder struct {
	owner
	reads, writes int // writes: of all kinds but Read
}

// String describes the state in the picture.
func (s state) String() string {
	if len(s.holders) == 0 {
		return "free"
	}
	holders := make([]string, 0, len(s.holders))
	for _, h := range s.holders {
		holders = append(holders, fmt.Sprintf("%s#%d (%d)", h.process, h.root, h.reads+h.writes))
	}
	return "held by " + strings.Join(holders, ", ")
}

// model is the perfect lock of each kind. A lock without readers counts as one that is only
// written.
var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, input, _ any) (bool, any) { return before.(state).after(input.(step)) },
	Equal: func(a, b any) bool {
		one, other := a.(state), b.(state)
		return one.token == other.token && one.anyToken == other.anyToken &&
			slices.Equal(one.holders, other.holders)
	},
	Hash: func(s any) uint64 {
		hash := maphash.Comparable(seed, s.(state).token)
		for _, h := range s.(state).holders {
			hash ^= maphash.Comparable(seed, h)
		}
		return hash
	},
	DescribeOperation: func(input, _ any) string { return input.(step).String() },
	DescribeState:     func(s any) string { return s.(state).String() },
}

var seed = maphash.MakeSeed()

// after returns the state that a step leads to, and false if a lock must not take the step.
func (s state) after(o step) (bool, state) {
	switch o.verb {
	case begin, open:
		return true, *o.before
	case call:
		return true, s
	case forget:
		s.anyToken = true
		return true, s
	}
	at, found := slices.BinarySearchFunc(s.holders, o.part.owner(), func(h holder, o owner) int {
		return h.compare(o)
	})
	mine := holder{owner: o.part.owner()}
	if found {
		mine = s.holders[at]
	}
	levels := &mine.writes
	if o.part.Kind == Read {
		levels = &mine.reads
	}
	if o.verb == end {
		if *levels == 0 {
			return false, s
		}
		*levels--
		return true, s.with(mine, at, found)
	}
	for _, other := range s.holders {
		if other.owner != mine.owner && (other.writes > 0 || o.part.Kind != Read) {
			return false, s
		}
	}
	if o.part.Kind == Write && mine.reads > 0 && mine.writes == 0 {
		return false, s // a read lock is not upgraded
	}
	if o.part.Kind == Fenced {
		fits := o.part.Token > s.token || s.anyToken
		if found {
			fits = o.part.Token == s.token
		}
		if !fits && !o.anyToken {
			return false, s
		}
		s.token, s.anyToken = o.part.Token, o.anyToken
	}
	*levels++
	return true, s.with(mine, at, found)
}

// with returns the state in which mine replaces what its owner had.
func (s state) with(mine holder, at int, found bool) state {
	holders := make([]holder, 0, len(s.holders)+1)
	holders = append(holders, s.holders[:at]...)
	if mine.reads > 0 || mine.writes > 0 {
		holders = append(holders, mine)
	}
	if found {
		at++
	}
	s.holders = append(holders, s.holders[at:]...)
	return s
}
