package history

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestHoldsThatHaveAnOrderAreLinearizable(t *testing.T) {
	kept(t, Linearizable, held("a", 1, plain, 0, 10, 20, 25), held("b", 1, plain, 0, 24, 30, 31))
	kept(t, Linearizable, held("a", 1, plain, 0, 10, 20, 21),
		nested(held("a", 2, plain, 11, 12, 13, 14)), held("b", 1, plain, 0, 24, 30, 31))
	kept(t, Linearizable, held("a", 1, write, 0, 10, 20, 21),
		nested(held("a", 2, read, 11, 12, 30, 31)), held("b", 1, read, 0, 22, 40, 41))
}

// Neither hold is seen valid while the other one is, so exclusion cannot judge them.
func TestHoldAcquiredBeforeAnotherIsReleasedHasNoOrder(t *testing.T) {
	a := held("a", 1, plain, 0, 10, 20, 25)
	a[2].At = at(10) // trusted only when it was granted
	verdict := inBreach(t, Linearizable, 1, a, held("b", 1, plain, 0, 15, 30, 31))
	require.Empty(t, of(Exclusion, verdict.Breaches))
	b := of(Linearizable, verdict.Breaches)[0]
	require.Equal(t, `"lock": 1 operations have no order that a lock allows; at most 0 do, `+
		`and then not: b#1 plain "lock": acquired, when it is held by a#1 (1)`, b.Text)
	require.Equal(t, at(15), b.At)
	require.Len(t, b.Between, 1)
}

func TestWriterThatIsLetInAmongReadersHasNoOrder(t *testing.T) {
	a := held("a", 1, read, 0, 10, 20, 25)
	a[2].At = at(10)
	inBreach(t, Linearizable, 1, a, held("b", 1, write, 0, 15, 30, 31))
	kept(t, Linearizable, a, held("b", 1, read, 0, 15, 30, 31), held("c", 1, write, 0, 32, 40, 41))
}

// Porcupine's intervals are closed, and so are the windows.
func TestEventsAtTheSameInstantMayHaveAnyOrder(t *testing.T) {
	kept(t, Linearizable, held("a", 1, plain, 0, 20, 20, 21), held("b", 1, plain, 0, 20, 30, 31))
}

func TestLevelThatIsNotHeldCannotEnd(t *testing.T) {
	hold := part{&Acquisition{Process: "a", Number: 1, Root: 1}, Plain}
	ok, acquired := state{}.after(step{verb: acquire, part: hold})
	require.True(t, ok)
	ok, released := acquired.after(step{verb: end, part: hold})
	require.True(t, ok)
	require.Equal(t, "free", released.String())
	ok, _ = released.after(step{verb: end, part: hold})
	require.False(t, ok)
}

func TestOnlyALevelThatWasNotReleasedMayBeLost(t *testing.T) {
	a := held("a", 1, plain, 0, 10, 20, 25)
	a[2].At = at(10)
	b := held("b", 1, plain, 0, 15, 30, 31)
	for _, how := range []What{NotHeld, Unconfirmed} {
		kept(t, Linearizable, append(a[:4:4], did(25, "a", 1, how)), b)
	}
	kept(t, Linearizable, a[:3], b, []Event{{At: at(12), What: Killed, Process: "a"}})
	kept(t, Linearizable, append(a[:3:3], did(12, "a", 1, Lost)), b)
	inBreach(t, Linearizable, 1, append(a[:2:2], did(16, "a", 1, Valid), did(17, "a", 1, Lost)), b)
	inBreach(t, Linearizable, 1, a, b, []Event{{At: at(26), What: Killed, Process: "a"}})
}

func TestInnerLevelThatIsStillHeldKeepsOthersOut(t *testing.T) {
	outer, inner := held("a", 1, plain, 0, 10, 20, 21), nested(held("a", 2, plain, 11, 12, 30, 31))
	inner[2].At = at(12)
	inBreach(t, Linearizable, 1, outer, inner, held("b", 1, plain, 0, 25, 40, 41))
	kept(t, Linearizable, outer, inner, held("b", 1, plain, 0, 30, 40, 41))
}

func TestReaderThatWritesHasNoOrder(t *testing.T) {
	inBreach(t, Linearizable, 1, held("a", 1, read, 0, 10, 20, 21),
		nested(held("a", 2, write, 11, 12, 13, 14)))
}

func TestAcquisitionsWithUnknownOutcomeHinderNobody(t *testing.T) {
	unknown := []Event{waitingFor(0, asked(0, "a", 1, plain)), did(50, "a", 1, Unknown)}
	kept(t, Linearizable, unknown, held("b", 1, plain, 0, 10, 20, 21))
	kept(t, Linearizable,
		[]Event{asked(0, "a", 1, plain), {At: at(50), What: Killed, Process: "a"}},
		held("b", 1, plain, 0, 10, 20, 21))
}

func TestTokenThatDoesNotGrowHasNoOrder(t *testing.T) {
	first := withToken(5, held("a", 1, fenced, 0, 10, 20, 21))
	later := func(number int64) []Event {
		return withToken(number, held("b", 1, fenced, 5, 23, 30, 31))
	}
	kept(t, Linearizable, first, later(6))
	inBreach(t, Linearizable, 1, first, later(5))
	inBreach(t, Linearizable, 1, first, later(4))
	kept(t, Linearizable, first, later(4), fault("flush", 15, 16))
	// Inner levels have the same token.
	kept(t, Linearizable, first, withToken(5, nested(held("a", 2, fenced, 11, 12, 13, 14))),
		later(6))
	inBreach(t, Linearizable, 1, first, withToken(6, nested(held("a", 2, fenced, 11, 12, 13, 14))),
		later(7))
}

func TestTokensGrowAgainAfterTheServersForgot(t *testing.T) {
	first := withToken(5, held("a", 1, fenced, 0, 10, 20, 21))
	second := withToken(1, held("b", 1, fenced, 202, 203, 210, 211))
	third := func(number int64) []Event {
		return withToken(number, held("c", 1, fenced, 212, 213, 220, 221))
	}
	kept(t, Linearizable, first, fault("flush", 50, 60), second, third(2))
	inBreach(t, Linearizable, 1, first, fault("flush", 50, 60), second, third(1))
	inBreach(t, Linearizable, 1, first, fault("flush", 300, 310), second, third(2))
	// An acquisition during the period may precede the moment when the servers forgot.
	kept(t, Linearizable, first, fault("flush", 50, 120),
		withToken(6, held("c", 2, fenced, 70, 71, 80, 81)), second, third(2))
}

// An unconfirmed release may end until another acquires the lock, so all of this is one piece.
func TestOnlyTheFirstTokenAfterTheServersForgotMayBeAny(t *testing.T) {
	first := withToken(5, held("a", 1, fenced, 0, 10, 20, 21))
	first[4].What = Unconfirmed
	second := withToken(1, held("b", 1, fenced, 115, 116, 120, 121))
	third := func(number int64) []Event {
		return withToken(number, held("c", 1, fenced, 212, 213, 220, 221))
	}
	kept(t, Linearizable, first, fault("flush", 50, 60), second, third(2))
	inBreach(t, Linearizable, 1, first, fault("flush", 50, 60), second, third(1))
}

func TestForgottenHoldMayBeAcquiredByAnotherOnlyThen(t *testing.T) {
	a, b := held("a", 1, plain, 0, 10, 200, 201), held("b", 1, plain, 0, 150, 160, 161)
	kept(t, Linearizable, a, b, fault("flush", 100, 120))
	inBreach(t, Linearizable, 1, a, b, fault("flush", 160, 170))
	inBreach(t, Linearizable, 1, a, b, fault("cut", 100, 120))
}

func TestFormerWaiterOfAFairLockIsInNobodysWayUnlessItMayHang(t *testing.T) {
	left := []Event{waitingFor(100*ms, asked(1000, "c", 1, fair)), did(1100, "c", 1, Refused)}
	refused := []Event{waitingFor(0, asked(5000, "b", 1, fair)), did(5001, "b", 1, Refused)}
	inBreach(t, Linearizable, 1, left, refused)
	inBreach(t, Linearizable, 0, left, refused, fault("cut", 1050, 1060, "c"))
}

func TestWaiterThatJustLeftMayHaveBeenGrantedALock(t *testing.T) {
	for _, lock := range []Lock{plain, fenced} {
		left := []Event{waitingFor(1000*ms, asked(1000, "c", 1, lock)), did(2000, "c", 1, Refused)}
		refused := func(from, to int) []Event {
			return []Event{waitingFor(0, asked(from, "b", 1, lock)), did(to, "b", 1, Refused)}
		}
		// Shortly before the end of its wait, until it has released the lock.
		handedOver(t, Linearizable, 1, left, refused(1940, 1949))
		handedOver(t, Linearizable, 0, left, refused(1940, 1950))
		handedOver(t, Linearizable, 0, left, refused(2050, 2060))
		handedOver(t, Linearizable, 1, left, refused(2051, 2060))
		inBreach(t, Linearizable, 1, left, refused(1940, 1950))
		// Until a lease after it could have released the lock.
		cut := fault("cut", 1500, 3000, "c")
		handedOver(t, Linearizable, 0, left, refused(3000+200+2*1000+50, 6000), cut)
		handedOver(t, Linearizable, 1, left, refused(3000+200+2*1000+51, 6000), cut)
	}
}

func TestRefusalIsABreachIfNoOtherCanHaveHeldTheLock(t *testing.T) {
	refused := func(lock Lock, process string, from, to int) []Event {
		return []Event{waitingFor(0, asked(from, process, 1, lock)), did(to, process, 1, Refused)}
	}
	verdict := inBreach(t, Linearizable, 1, refused(plain, "b", 0, 9),
		held("a", 1, plain, 10, 20, 30, 31))
	require.Contains(t, verdict.Breaches[0].Text, "nobody else can have had it")
	kept(t, Linearizable, refused(plain, "b", 0, 10), held("a", 1, plain, 10, 20, 30, 31))
	kept(t, Linearizable, refused(plain, "b", 31, 40), held("a", 1, plain, 10, 20, 30, 31))
	inBreach(t, Linearizable, 1, refused(plain, "b", 32, 40), held("a", 1, plain, 10, 20, 30, 31))
	kept(t, Linearizable, refused(plain, "b", 32, 40), held("a", 1, plain, 10, 20, 30, 31),
		fault("cut", 35, 36))
	kept(t, Linearizable, refused(plain, "b", 32, 40), held("a", 1, plain, 10, 20, 30, 31),
		fault("flush", 1, 5))
	// Waiters in another process hinder nobody, unless there is a queue in Redis.
	waiting := []Event{waitingFor(60*ms, asked(32, "c", 1, plain)), did(41, "c", 1, Refused)}
	inBreach(t, Linearizable, 1, refused(plain, "b", 32, 40), held("a", 1, plain, 10, 20, 30, 31),
		waiting)
	same := []Event{waitingFor(60*ms, asked(32, "b", 2, plain)), did(41, "b", 2, Refused)}
	kept(t, Linearizable, refused(plain, "b", 32, 40), held("a", 1, plain, 10, 20, 30, 31), same)
	waiting[0].Locks = []Lock{fair}
	kept(t, Linearizable, refused(fair, "b", 32, 40), held("a", 1, fair, 10, 20, 30, 31), waiting)
	// Nor is the caller itself.
	inBreach(t, Linearizable, 1,
		[]Event{within(1, waitingFor(0, asked(12, "a", 2, plain))), did(13, "a", 2, Refused)},
		held("a", 1, plain, 0, 10, 30, 31))
	// An unknown outcome may be a hold, for one lease.
	unknown := []Event{waitingFor(0, asked(0, "a", 1, plain)), did(50, "a", 1, Unknown)}
	kept(t, Linearizable, unknown, refused(plain, "b", 1300, 1301))
	inBreach(t, Linearizable, 1, unknown, refused(plain, "b", 1301, 1302))
	// The hold begins when the network that delayed the command delivers it, even if its caller has
	// left.
	cut := delaying(fault("cut", 40, 4000, "a"))
	killed := []Event{waitingFor(0, asked(0, "a", 1, plain)),
		{At: at(50), What: Killed, Process: "a"}}
	failed := []Event{waitingFor(0, asked(0, "a", 1, plain)), did(50, "a", 1, Failed)}
	for _, attempt := range [][]Event{unknown, killed, failed} {
		kept(t, Linearizable, attempt, cut, refused(plain, "b", 5250, 5251))
		inBreach(t, Linearizable, 1, attempt, cut, refused(plain, "b", 5251, 5252))
		inBreach(t, Linearizable, 1, attempt, delaying(fault("another's", 40, 4000, "c")),
			refused(plain, "b", 5250, 5251))
		inBreach(t, Linearizable, 1, attempt, fault("process killed", 40, 4000, "a"),
			refused(plain, "b", 5250, 5251))
	}
	kept(t, Linearizable, unknown, delaying(fault("just after", 250, 4000, "a")),
		refused(plain, "b", 5250, 5251))
	inBreach(t, Linearizable, 1, unknown, delaying(fault("later", 251, 4000, "a")),
		refused(plain, "b", 5250, 5251))
	// A renewal of a killed process is delayed as well.
	lost := []Event{asked(0, "a", 1, plain), did(5, "a", 1, Granted),
		{At: at(50), What: Killed, Process: "a"}}
	kept(t, Linearizable, lost, cut, refused(plain, "b", 5250, 5251))
	inBreach(t, Linearizable, 1, lost, cut, refused(plain, "b", 5251, 5252))
}

func TestUndecidedHistoryIsABreach(t *testing.T) {
	require.Equal(t, porcupine.Unknown, piece{}.check(0))
	var verdict Verdict
	verdict.Judged = map[string]int{}
	h := story(t, []Event{asked(0, "a", 1, plain), did(10, "a", 1, Granted)})
	h.linearizableWithin(0, bounds, &verdict)
	require.Len(t, verdict.Breaches, 1)
	require.Contains(t, verdict.Breaches[0].Text, "not decided")
}

// What makes the search fast must not change its result: the same operations as recorded, and all
// at once.
func TestNarrowWindowsAndPiecesChangeNoVerdict(t *testing.T) {
	t.Parallel()
	illegal, tried := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"plain", "fenced", "rw"}).Draw(t, "name")
		names := slices.DeleteFunc(slices.Clone(simNames), func(l Lock) bool {
			return l.Name != name
		})
		faults := rapid.SampledFrom([][]string{nil, {"kill"}, {"stop"}, {"cut"}}).Draw(t, "faults")
		seed := rapid.Uint64().Draw(t, "seed")
		s := newSimulator(seed, 4*time.Second, names...)
		s.fixed = rapid.Bool().Draw(t, "some leases are explicit")
		s.defect = rapid.SampledFrom([]string{"", "no exclusion", "tokens stand still",
			"no deadline", "release of any hold"}).Draw(t, "defect")
		events := s.run(3, 1, faults)
		// Move a few operations.
		random := rand.New(rand.NewPCG(seed, 2))
		events = events[:min(len(events), 150)]
		for range rapid.IntRange(0, 3).Draw(t, "moved") {
			if e := &events[random.IntN(len(events))]; e.What == Granted || e.What == Released {
				e.At = e.At.Add(time.Duration(random.IntN(10)) * ms)
			}
		}
		h, err := New(events)
		if err != nil {
			return // moved too far
		}
		m := h.memory(simBounds)
		fast := porcupine.Ok
		for _, pieces := range h.pieces(simBounds) {
			for _, p := range pieces {
				if p.check(searchLimit) != porcupine.Ok {
					fast = porcupine.Illegal
				}
			}
		}
		for _, parts := range h.names() {
			slow := porcupine.CheckOperationsTimeout(model, m.operations(m.windows(parts)),
				5*time.Second)
			if slow == porcupine.Unknown {
				continue
			}
			tried++
			if fast != porcupine.Ok {
				illegal++
			}
			if slow != fast {
				t.Errorf("%v, but %v in pieces", slow, fast)
			}
		}
	})
	t.Logf("%d histories, %d without an order", tried, illegal)
	require.Positive(t, illegal)
	require.Greater(t, tried, illegal)
}

func TestThePiecesHaveAllOperationsInTheirOrder(t *testing.T) {
	h, err := New(newSimulator(3, 20*time.Second, Lock{"plain", Plain}).run(4, 2, nil))
	require.NoError(t, err)
	pieces := h.pieces(simBounds)["plain"]
	require.Greater(t, len(pieces), 100)
	count, until := 0, int64(0)
	for _, p := range pieces {
		require.Greater(t, p.operations[0].Call, until)
		for _, o := range p.operations {
			until = max(until, o.Return)
		}
		count += len(p.operations)
		require.True(t, slices.IsSortedFunc(p.operations, func(a, b porcupine.Operation) int {
			return cmp.Compare(a.Call, b.Call)
		}))
	}
	require.Equal(t, 2*len(granted(h.names()["plain"])), count)
}
