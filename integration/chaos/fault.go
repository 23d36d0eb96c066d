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
	// Forgets says that servers may lose holds and fencing tokens by it.
	Forgets bool
	// KeepsTokens says that tokens are not among what they lose.
	KeepsTokens bool
	// Delays says that what is said to the servers meanwhile is done when it is over, whether or not anybody still listens.
	Delays bool
	// ofServers says that it is about servers. Two of those at a time would be in each other's way.
	ofServers bool
	// await waits until the fault can do some harm. Defaults to no wait.
	await func(r *run)
	// begin starts it. It returns which processes are concerned, nil being all, and what ends it; both halves run in the
	// goroutine of the test. It is nil, nil where there is nothing to be done just now.
	begin func(r *run) (concerned []string, heal func())
	// lasts is the longest time from begin to heal, in leases of the watchdog; 0 is for what happens in a moment.
	lasts float64
	// settles is how much longer the effects may be felt, such as until a connection is made again.
	settles time.Duration
}

// Within is the fault, over after that many leases at most.
func (f Fault) Within(leases float64) Fault {
	f.lasts = leases
	return f
}

// quiet is a peace that is long enough to see that all is well again: that waiters are woken and leases kept.
const quiet = 3*time.Second + wakeUp

// nemesis plays faults until the time is over, each about as often as the others, now and then two at a time, with some
// peace in between, and now and then more.
func (r *run) nemesis(end time.Time) {
	for round := 1; time.Now().Before(end); round++ {
		r.rest(r.upTo(r.scenario.Peace))
		if len(r.scenario.Faults) == 0 {
			continue
		}
		faults := []Fault{r.draw()}
		if r.dice.IntN(4) == 0 {
			if other := r.draw(); other.Name != faults[0].Name && (!other.ofServers || !faults[0].ofServers) {
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

// draw takes a fault from the deck, which is shuffled anew when it is empty: so none is left out for long.
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
		if f.await != nil {
			f.await(r)
		}
		begun := history.Now()
		concerned, heal := f.begin(r)
		if heal == nil {
			continue
		}
		// Recorded at the time before it began, and healed at the time after: so it is never shorter than what was felt.
		r.log.add(history.Event{At: begun, What: history.Fault, Fault: f.Name, Processes: concerned,
			Forgets: f.Forgets, KeepsTokens: f.KeepsTokens, Delays: f.Delays})
		heals = append(heals, func() {
			heal()
			now := history.Now()
			r.log.add(history.Event{At: now, Until: now.Add(f.settles), What: history.Healed, Fault: f.Name})
		})
		r.played[f.Name]++
		if f.lasts > 0 {
			r.rest(r.upTo(time.Duration(f.lasts * float64(r.scenario.lease()))))
		}
	}
	for i := range heals {
		heals[len(heals)-1-i]()
	}
}

// rest waits.
func (r *run) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// upTo is a time from 1 ns to limit.
func (r *run) upTo(limit time.Duration) time.Duration {
	return 1 + time.Duration(r.dice.Int64N(int64(limit)))
}

// victim draws a client process that may be hit.
func (r *run) victim() *slot { return r.slots[r.dice.IntN(cmp.Or(r.scenario.Victims, len(r.slots)))] }
