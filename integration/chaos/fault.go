package chaos

import (
	"cmp"
	"slices"
	"time"

	"holdfast/integration/history"
)

// Fault is something that goes wrong for a while.
type Fault struct {
	Name string
	// Forgets reports that servers may lose holds and fencing tokens.
	Forgets bool
	// KeepsTokens reports that they lose no tokens.
	KeepsTokens bool
	// Delays reports that commands sent meanwhile are executed when the fault is over, whether or
	// not their sender still waits.
	Delays bool
	// Spares are the invariants that it must not harm, such as Kept if locks that are held have
	// nothing to do with it.
	Spares []string
	// except returns the locks that it does not spare.
	except func(r *run) []string
	// ofServers reports that the fault is one of servers. Two of those at a time would interfere.
	ofServers bool
	// wait waits until the fault can do some harm. Defaults to no wait.
	wait func(r *run)
	// begin starts the fault. It returns the processes concerned, where nil means all, and what
	// ends it. Both run in the goroutine of the test. It returns nil, nil if there is nothing to
	// do.
	begin func(r *run) (concerned []string, heal func())
	// lasts is the longest time from begin to heal, in leases of the watchdog; 0 for momentary
	// faults.
	lasts float64
	// least is the shortest such time.
	least float64
	// settles is how much longer the effects may be felt, such as until a connection is made again.
	settles time.Duration
}

// Within returns the fault, over after that many leases at most.
func (f Fault) Within(leases float64) Fault {
	f.lasts = leases
	return f
}

// quiet is a peace long enough to see all recover: waiters are woken and leases kept.
const quiet = 3*time.Second + wakeUp

// nemesis plays faults until the end, each about equally often, now and then two at a time. There
// is some peace in between, and now and then more.
func (r *run) nemesis(end time.Time) {
	for round := 1; time.Now().Before(end); round++ {
		r.rest(r.upTo(r.scenario.Peace))
		if len(r.scenario.Faults) == 0 {
			continue
		}
		faults := []Fault{r.draw()}
		if r.dice.IntN(4) == 0 {
			if other := r.draw(); other.Name != faults[0].Name &&
				(!other.ofServers || !faults[0].ofServers) {
				faults = append(faults, other)
			}
		}
		r.play(faults)
		r.rest(r.scenario.Calm)
		if r.scenario.Quiet && round%4 == 0 {
			r.rest(quiet)
		}
	}
}

// draw draws a fault from the deck, which is shuffled again when it is empty. So none is left out
// for long.
func (r *run) draw() Fault {
	if len(r.deck) == 0 {
		r.deck = slices.Clone(r.scenario.Faults)
		r.dice.Shuffle(len(r.deck), func(i, j int) { r.deck[i], r.deck[j] = r.deck[j], r.deck[i] })
	}
	f := r.deck[0]
	r.deck = r.deck[1:]
	return f
}

// play begins faults, waits, and heals them in the reverse order.
func (r *run) play(faults []Fault) {
	var heals []func()
	for _, f := range faults {
		if f.wait != nil {
			f.wait(r)
		}
		begun := history.Now()
		over := r.beginFault(f)
		concerned, heal := f.begin(r)
		if heal == nil {
			over()
			continue
		}
		// The recorded fault starts before begin and ends after heal: it is never shorter than its
		// effects.
		r.log.add(history.Event{At: begun, What: history.Fault, Fault: f.Name, Processes: concerned,
			Forgets: f.Forgets, KeepsTokens: f.KeepsTokens, Delays: f.Delays, Spares: f.Spares,
			Except: f.exceptions(r)})
		heals = append(heals, func() {
			heal()
			over()
			now := history.Now()
			r.log.add(history.Event{At: now, Until: now.Add(f.settles), What: history.Healed,
				Fault: f.Name})
		})
		r.played[f.Name]++
		if f.lasts > 0 {
			leases := func(n float64) time.Duration {
				return time.Duration(n * float64(r.scenario.lease()))
			}
			r.rest(leases(f.least) + r.upTo(leases(f.lasts-f.least)))
		}
	}
	for i := range heals {
		heals[len(heals)-1-i]()
	}
}

// beginFault counts a fault if it is one of servers, and so does the function that it returns.
func (r *run) beginFault(f Fault) (over func()) {
	if !f.ofServers {
		return func() {}
	}
	r.serverFaults.Add(1)
	return func() { r.serverFaults.Add(1) }
}

// exceptions returns the locks that the fault does not spare.
func (f Fault) exceptions(r *run) []string {
	if f.except == nil {
		return nil
	}
	return f.except(r)
}

// rest waits.
func (r *run) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// upTo draws a time from 1 ns to limit.
func (r *run) upTo(limit time.Duration) time.Duration {
	return 1 + time.Duration(r.dice.Int64N(int64(limit)))
}

// victim draws a client process that may be hit.
func (r *run) victim() *slot {
	return r.slots[r.dice.IntN(cmp.Or(r.scenario.Victims, len(r.slots)))]
}
