package history

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Histories made by hand. Instants are milliseconds.

const ms = time.Millisecond

var (
	bounds = Bounds{Lease: 1000 * ms, Command: 200 * ms, Slack: 50 * ms, WakeUp: 50 * ms,
		Strict: true}

	plain  = Lock{"lock", Plain}
	fair   = Lock{"lock", Fair}
	fenced = Lock{"lock", Fenced}
	read   = Lock{"lock", Read}
	write  = Lock{"lock", Write}
)

func at(millis int) Instant { return Instant(millis) * Instant(ms) }

// asked returns a call without limit and with a lease of Bounds.Lease.
func asked(millis int, process string, number int, lock Lock) Event {
	return Event{At: at(millis), What: Asked, Process: process, Number: number, Locks: []Lock{lock},
		Wait: -1, Lease: bounds.Lease}
}

// waitingFor adds a wait to a call.
func waitingFor(wait time.Duration, e Event) Event {
	e.Wait = wait
	return e
}

// did returns any other event of a process.
func did(millis int, process string, number int, what What) Event {
	return Event{At: at(millis), What: what, Process: process, Number: number}
}

// held returns a hold that is requested, granted, and trusted until it is released.
func held(process string, number int, lock Lock, call, answered, releasing, gone int) []Event {
	granted := did(answered, process, number, Granted)
	granted.Owner = process
	return []Event{asked(call, process, number, lock), granted,
		did(releasing, process, number, Valid),
		did(releasing, process, number, Releasing), did(gone, process, number, Released)}
}

// fault returns a period of a fault. It forgets if its name is flush.
func fault(name string, from, to int, processes ...string) []Event {
	return []Event{{At: at(from), What: Fault, Fault: name, Processes: processes,
		Forgets: name == "flush"},
		{At: at(to), What: Healed, Fault: name}}
}

// settling makes a fault last in its effects until later.
func settling(until int, fault []Event) []Event {
	fault[1].Until = at(until)
	return fault
}

func withToken(number int64, events []Event) []Event {
	events[1].Token = number
	return events
}

// nested puts the events into the process's first acquisition.
func nested(events []Event) []Event {
	events[0].Root = 1
	return events
}

// freeAt returns the end of the run, when the lock can be acquired.
func freeAt(millis int) []Event { return []Event{{At: at(millis), What: Free, Name: "lock"}} }

func story(t testing.TB, events ...[]Event) *History {
	t.Helper()
	h, err := New(slices.Concat(events...))
	require.NoError(t, err)
	return h
}

// inBreach fails unless the invariant is breached that many times.
func inBreach(t testing.TB, invariant string, times int, events ...[]Event) Verdict {
	t.Helper()
	verdict := story(t, events...).Judge(bounds)
	require.Len(t, of(invariant, verdict.Breaches), times, "%v", verdict.Breaches)
	return verdict
}

// unexplained has the invariants that these stories may also breach, because they lose holds and
// replies without a fault.
var unexplained = []string{Answers, Kept, Waits, Remains}

// kept fails unless all invariants but those are kept, and this one was judged.
func kept(t testing.TB, invariant string, events ...[]Event) Verdict {
	t.Helper()
	verdict := story(t, append(events, freeAt(100_000))...).Judge(bounds)
	breaches := slices.DeleteFunc(verdict.Breaches, func(b Breach) bool {
		return b.Invariant != invariant && slices.Contains(unexplained, b.Invariant)
	})
	require.Empty(t, breaches)
	require.Positive(t, verdict.Judged[invariant])
	return verdict
}

func of(invariant string, breaches []Breach) []Breach {
	return slices.DeleteFunc(slices.Clone(breaches), func(b Breach) bool {
		return b.Invariant != invariant
	})
}
