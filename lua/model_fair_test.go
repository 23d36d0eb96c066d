//go:build redis

package lua_test

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/internal/wire"
	"holdfast/lua"
)

// The keys of a fair lock beside the lock itself.
const (
	queueName  = "redisson_lock_queue:{" + lock + "}"
	scoresName = "redisson_lock_timeout:{" + lock + "}"
	turnName   = "holdfast_lock_turn:{" + lock + "}"

	budgetsName = "holdfast_lock_budget:{" + lock + "}"
)

// What a fair lock promises waiters: how long they have to take their turn, with a listener and
// without, and how long they keep their place after a request.
const (
	listenersTurn = 10 * time.Second
	silentTurn    = 500 * time.Millisecond
	outlasts      = 2 * lua.LongestSleep
	aboutToLeave  = time.Second // a waiter that stops waiting before needs no more
)

// fairModel is the model of a fair lock: the hold of an exclusive one, and a queue.
type fairModel struct {
	*exclusiveModel
	lock      lua.Fair
	queue     []*waiter
	turn      *chance
	listening map[string]bool

	budgets    map[string]*int64 // when owners stop waiting
	budgetsEnd *int64            // when the budgets expire
}

// waiter is a place in the queue.
type waiter struct {
	owner  string
	score  *int64 // nil: lost
	window int64
	asked  int64 // when it last asked
	kept   bool  // it has done what it must never to lose its place
}

// chance is the turn of a head of the queue.
type chance struct {
	whose              *waiter
	until, score, ends *int64
	hurried            time.Duration // to how much it was shortened; 0 if it was not
}

// goesOn reports whether a head has the turn: its own, or that of a head that has silently left, if
// they are of one client or nobody listens for the new head.
func (m *fairModel) goesOn(head *waiter, deaf bool) bool {
	if m.turn == nil || m.turn.whose == head {
		return m.turn != nil
	}
	i, inherits := m.place(m.turn.whose.owner), head == m.queue[0]
	inherits = inherits && (deaf || clientOf(head.owner) == clientOf(m.turn.whose.owner))
	return inherits && (i < 0 || m.queue[i].score == nil)
}

func newFair(p *program, counted bool) *fairModel {
	m := &fairModel{
		exclusiveModel: newExclusive(p, false),
		lock:           lua.Fair{Lock: lock, Counted: counted},
		listening:      map[string]bool{},
		budgets:        map[string]*int64{},
	}
	p.model = m
	// The first request to an empty queue keeps budgets that Redisson has left behind, and the second
	// request sweeps them. An owner that queues again does not inherit its own former turn any more.
	p.unsteady = []string{budgetsName, turnName}
	return m
}

func (m *fairModel) want() keyspace {
	k := m.exclusiveModel.want()
	scores := map[string]*int64{}
	var owners []string
	for _, w := range m.queue {
		owners = append(owners, w.owner)
		if w.score != nil {
			scores[w.owner] = w.score
		}
	}
	if owners != nil {
		k[queueName] = entry{list: owners}
	}
	if len(scores) > 0 {
		k[scoresName] = entry{scores: scores}
	}
	if len(m.budgets) > 0 {
		k[budgetsName] = entry{scores: maps.Clone(m.budgets), ends: m.budgetsEnd}
	}
	if m.turn != nil {
		text := m.turn.whose.owner
		if m.turn.hurried > 0 {
			text += " " + ms(m.turn.hurried)
		}
		k[turnName] = entry{
			text:   text,
			stamps: []*int64{m.turn.until, m.turn.score},
			ends:   m.turn.ends,
		}
	}
	return k
}

func (m *fairModel) limits() (limits []int64) {
	if m.turn != nil {
		limits = append(limits, *m.turn.until)
	}
	for _, ends := range m.budgets {
		limits = append(limits, *ends-aboutToLeave.Milliseconds())
	}
	if m.owner != "" && m.ends != nil {
		limits = append(
			limits,
			*m.ends-lua.LongestSleep.Milliseconds(),
		) // a waiter that asks by then is not told
	}
	return limits
}

func (m *fairModel) expire(now int64) {
	m.exclusiveModel.expire(now)
	if m.turn != nil && *m.turn.ends <= now {
		m.turn = nil
	}
	if m.budgetsEnd != nil && *m.budgetsEnd <= now {
		m.forgetBudgets()
	}
	for _, w := range m.queue {
		const ofTheTest = 200 // milliseconds that a test may take for a request
		w.kept = w.kept && m.listening[w.owner] &&
			now <= w.asked+lua.LongestSleep.Milliseconds()+ofTheTest
	}
}

func (m *fairModel) age(passed int64) {
	for _, w := range m.queue {
		w.asked -= passed
	}
}

func (m *fairModel) place(owner string) int {
	return slices.IndexFunc(m.queue, func(w *waiter) bool { return w.owner == owner })
}

// shift adds to the scores from an index on.
func (m *fairModel) shift(from int, by int64) {
	for _, w := range m.queue[from:] {
		if w.score != nil {
			*w.score += by
		}
	}
}

// bring subtracts as much from the score of a waiter. A waiter that loses more than its window is
// safe only after its next request.
func (w *waiter) bring(forward int64) {
	if w.score != nil {
		*w.score -= forward
	}
	w.kept = w.kept && forward <= w.window
}

// drop removes owners from the queue. Those behind close up, to base if none is before them.
func (m *fairModel) drop(leaving map[string]bool, base int64) {
	if len(leaving) == 0 {
		return
	}
	var kept []*waiter
	closed := int64(0)
	for _, w := range m.queue {
		score := base
		if w.score != nil {
			score = *w.score
		}
		if leaving[w.owner] {
			closed += max(0, score-base)
		} else {
			kept = append(kept, w)
			w.bring(closed)
		}
		base = max(base, score)
	}
	m.queue = kept
	for owner := range leaving {
		delete(m.budgets, owner)
	}
	m.forgetEmpty()
}

// forgetEmpty models that an empty key does not exist.
func (m *fairModel) forgetEmpty() {
	if len(m.budgets) == 0 {
		m.forgetBudgets()
	}
	if len(m.queue) == 0 {
		m.turn = nil // it was the head's
	}
}

func (m *fairModel) forgetBudgets() { m.budgets, m.budgetsEnd = map[string]*int64{}, nil }

// sweep drops owners that leave, owners whose budget is over, and stale heads. It reports whether
// the head has changed.
func (m *fairModel) sweep(t *rapid.T, leaving map[string]bool) bool {
	t.Helper()
	if len(m.queue) == 0 {
		return false
	}
	head := m.queue[0]
	if leaving == nil {
		leaving = map[string]bool{}
	}
	for owner, ends := range m.budgets {
		if *ends <= m.now {
			leaving[owner] = true
		}
	}
	m.drop(leaving, m.base(0, 0))
	for len(m.queue) > 0 && m.stale(m.queue[0]) &&
		(m.queue[0].score == nil || m.budgets[m.queue[0].owner] == nil) {
		m.lose(t)
	}
	m.forgetEmpty()
	return len(m.queue) == 0 || m.queue[0] != head
}

func (m *fairModel) stale(head *waiter) bool { return head.score == nil || *head.score <= m.now }

// lose removes the head from the queue, rightly or by mistake.
func (m *fairModel) lose(t *rapid.T) {
	t.Helper()
	require.False(
		t,
		m.queue[0].kept,
		"%s listens and asks in time, but loses its place",
		m.queue[0].owner,
	)
	m.queue = m.queue[1:]
}

// advise has the head ask again in time, or the last waiter with a listener if the head has none.
func (m *fairModel) advise(left time.Duration, deaf bool) {
	if left < 0 || left >= lua.LongestSleep {
		return
	}
	var order []*waiter
	if !deaf {
		order = append(order, m.queue[:min(1, len(m.queue))]...)
	}
	for _, w := range slices.Backward(m.queue) {
		order = append(order, w)
	}
	for _, w := range order {
		m.told = append(m.told, message{"PUBLISH", wire.FairChannel(lock, w.owner), soon})
		if m.listening[w.owner] || !m.lock.Counted {
			return
		}
	}
}

// base returns what the score of an owner that asks now counts from, at the given index: the score
// before it, but at least the end of the lease.
func (m *fairModel) base(place int, spare time.Duration) int64 {
	base := m.now + (max(0, m.leftOrFree()) + spare).Milliseconds()
	if place > 0 && m.queue[place-1].score != nil {
		base = max(base, *m.queue[place-1].score)
	}
	return base
}

func (m *fairModel) leftOrFree() time.Duration {
	if m.owner == "" {
		return 0
	}
	return m.left()
}

// asks is an attempt of one of our owners, which is late if its caller has left. It returns the
// holder.
func (m *fairModel) asks(t *rapid.T, r lua.FairRequest) *lua.Holder {
	t.Helper()
	owner, late := r.Owner, r.Until.Equal(longAgo)
	if m.owner == owner {
		m.hold(owner, 1, r.Lease)
		return nil
	}
	if m.owner != "" {
		m.turn = nil // another has asked: the next has a turn of its own
	}
	i := m.place(owner)
	queued := i >= 0 && m.queue[i].score != nil
	if queued && (r.Budget == 0 || !late && r.Budget > aboutToLeave) {
		w := m.queue[i]
		w.asked = m.now
		// The waiter must stay queued until its next request and longer. Those behind keep their
		// distance.
		m.shift(i, max(0, m.base(i, outlasts)+w.window-*w.score))
		w.kept = m.listening[owner]
	}
	if ends := m.budgets[owner]; ends != nil && r.Budget > 0 && !late {
		*ends = m.now + r.Budget.Milliseconds()
	}
	another := m.sweep(t, nil)
	queued = m.place(owner) >= 0
	asking := owner
	if late {
		asking = ""
	}
	holder := &lua.Holder{Owner: m.owner}
	if m.owner != "" {
		holder.TTL = m.left()
	} else {
		holder.Sleep = m.offer(t, asking)
		if holder.Sleep == 0 && !late {
			m.take(t, owner, r.Lease)
			return nil
		}
		if len(m.queue) > 0 {
			holder.Owner, holder.Next = m.queue[0].owner, true
		}
	}
	if r.Waits && !queued && !late {
		m.register(r)
	}
	if m.owner != "" && len(m.queue) > 0 && m.queue[0].owner != owner {
		holder.Sleep = lua.LongestSleep // only the head waits for the end of the lease
		if another {
			m.advise(m.left(), false)
		}
	}
	if late {
		holder.Sleep = 10 * time.Millisecond
	}
	return holder
}

// The times until which a request is good: one that was delayed for too long, and one for a server
// with another clock.
var (
	longAgo    = time.UnixMilli(1)
	otherClock = time.UnixMilli(1 << 52)
)

// register appends an owner to the queue.
func (m *fairModel) register(r lua.FairRequest) {
	score := m.base(len(m.queue), 0) + r.Window.Milliseconds()
	if n := len(m.queue); n > 0 && m.queue[n-1].score != nil {
		score = *m.queue[n-1].score + r.Window.Milliseconds()
	}
	m.queue = append(
		m.queue,
		&waiter{owner: r.Owner, score: &score, window: r.Window.Milliseconds(), asked: m.now,
			kept: m.listening[r.Owner] && r.Window >= outlasts},
	)
	if r.Budget > 0 {
		ends := m.now + r.Budget.Milliseconds()
		m.budgets[r.Owner] = &ends
		forgotten := ends + 2*outlasts.Milliseconds()
		if m.budgetsEnd == nil || *m.budgetsEnd < forgotten {
			m.budgetsEnd = &forgotten
		}
	}
}

// take gives the free lock to an owner that no queued waiter keeps from it.
func (m *fairModel) take(t *rapid.T, owner string, lease time.Duration) {
	t.Helper()
	for i, w := range m.queue[:max(0, m.place(owner))] {
		require.False(t, w.kept, "%s is queued before, at %d", w.owner, i)
	}
	if len(m.queue) > 0 {
		m.drop(map[string]bool{owner: true}, m.now+lease.Milliseconds())
		m.turn = nil
	}
	m.hold(owner, 1, lease)
	m.advise(lease, false)
}

// offer tells the head that the lock is free. It returns for how long others must leave the lock to
// it.
func (m *fairModel) offer(t *rapid.T, asking string) (sleep time.Duration) {
	t.Helper()
	silence := silentTurn // the turn of a head without a listener
	if !m.lock.Counted {
		silence = listenersTurn
	}
	// Of the head before, which is gone: it had no listener; its client; the turn of others of that.
	gone, hung, hurry := false, "", silence
	missed := map[string]bool{}
	for i := 0; i < len(m.queue) && m.queue[i].owner != asking; i++ {
		head := m.queue[i]
		m.told = append(m.told, message{"PUBLISH", wire.FairChannel(lock, head.owner), "0"})
		given := listenersTurn
		deaf := m.lock.Counted && !m.listening[head.owner]
		client, hurried := clientOf(head.owner), time.Duration(0)
		if client == hung {
			given, hurried = hurry, hurry
		}
		if deaf {
			given = silentTurn
		}
		waits := time.Duration(math.MaxInt64) // it is dropped after that
		if ends := m.budgets[head.owner]; ends != nil {
			waits = time.Duration(*ends-m.now) * time.Millisecond
		}
		mine, left := m.goesOn(head, deaf), time.Duration(0)
		if mine {
			left = time.Duration(*m.turn.until-m.now) * time.Millisecond
		}
		if left > 0 && left <= given {
			return min(left, waits)
		}
		// Its turn begins, or its listener has left since it began.
		if left > 0 || !mine && (!gone || !deaf) {
			m.drop(missed, m.now)
			m.turn = &chance{
				whose: head,
				until: instant(m.now + given.Milliseconds()),
				score: instant(*head.score),
				ends:  instant(m.now + 2*listenersTurn.Milliseconds()),

				hurried: hurried,
			}
			given = min(given, waits)
			if deaf {
				m.advise(given, true)
			}
			return given
		}
		gone, hung = deaf, client
		hurry = silence
		if mine && m.turn.hurried > 0 {
			hurry = max(m.turn.hurried/4, 100*time.Millisecond)
		}
		require.False(t, head.kept, "%s listens and asks in time, but loses its place", head.owner)
		missed[head.owner] = true
	}
	m.drop(missed, m.now)
	return 0
}

// requireDistances asserts that each score is at least a window above the one before: a waiter of
// Redisson's that leaves subtracts its window from all scores behind.
func (m *fairModel) requireDistances(t *rapid.T) {
	t.Helper()
	for i, w := range m.queue[min(1, len(m.queue)):] {
		if before := m.queue[i]; before.score != nil && w.score != nil {
			require.GreaterOrEqual(
				t,
				*w.score-*before.score,
				w.window,
				"from %s to %s in %s",
				before.owner,
				w.owner,
				m.order(),
			)
		}
	}
}

func (m *fairModel) order() string {
	var owners []string
	for _, w := range m.queue {
		owners = append(owners, w.owner)
	}
	return strings.Join(owners, " < ")
}

func TestFairLockAgreesWithItsModel(t *testing.T) {
	checkModel(t, func(t *rapid.T, p *program) actions { return newFair(p, true).actions(t) })
}

func TestFairLockOnAServerThatDoesNotCountListenersAgreesWithItsModel(t *testing.T) {
	checkModel(t, func(t *rapid.T, p *program) actions { return newFair(p, false).actions(t) })
}

// queuers are our owners, some of them of one client.
var queuers = []string{anna, bert, cleo, dora, emil}

var anyQueuer = evenly(queuers...)

var windows = evenly(700*time.Millisecond, 4*time.Second, 20*time.Second, 5*time.Minute)

func (m *fairModel) actions(t *rapid.T) map[string]func(*rapid.T) {
	for _, owner := range append(slices.Clone(queuers), java) {
		m.subscribe(t, "UNSUBSCRIBE", wire.FairChannel(lock, owner))
	}
	actions := map[string]func(*rapid.T){
		"ask":               func(t *rapid.T) { m.ask(t, anyQueuer.Draw(t, "owner"), true) },
		"ask again":         func(t *rapid.T) { m.ask(t, anyQueuer.Draw(t, "owner"), true) },
		"try":               func(t *rapid.T) { m.ask(t, anyQueuer.Draw(t, "owner"), false) },
		"all ask":           m.allAsk,
		"all leave":         m.allLeave,
		"client hangs":      m.clientHangs,
		"ask late":          m.askLate,
		"live":              m.live,
		"reenter":           m.reenter,
		"release":           m.releaseOrLeave,
		"force unlock":      m.forceUnlockAndTell,
		"renew":             m.renew,
		"inspect":           m.inspectQueue,
		"listen":            func(t *rapid.T) { m.hear(t, true) },
		"stop listening":    func(t *rapid.T) { m.hear(t, false) },
		"Java asks":         func(t *rapid.T) { m.javaAsks(t, true) },
		"Java tries":        func(t *rapid.T) { m.javaAsks(t, false) },
		"Java gives up":     m.javaGivesUp,
		"Java releases":     m.javaReleasesAndTells,
		"plain Java lock":   m.javaBarges,
		"head has no score": m.loseScore,
	}
	actions[""] = m.requireDistances
	return actions
}

// ask is an attempt of one of our owners, which keeps its window while it waits. Owners with a
// short window stop waiting after it.
func (m *fairModel) ask(t *rapid.T, owner string, waits bool) {
	r := lua.FairRequest{
		Owner:  owner,
		Count:  1,
		Lease:  leases.Draw(t, "lease"),
		Waits:  waits,
		Window: windows.Draw(t, "window"),
	}
	// Redisson drops waiters without their budgets. They ask again, and go on waiting as before.
	limited := r.Window < outlasts || m.budgets[owner] != nil || rapid.Bool().Draw(t, "limited")
	if i := m.place(owner); i >= 0 {
		r.Window = time.Duration(m.queue[i].window) * time.Millisecond
		limited = m.budgets[owner] != nil
	}
	if waits && limited {
		r.Budget = r.Window
		r.Until = evenly(time.Time{}, otherClock).Draw(t, "until")
	}
	m.request(t, r)
}

// askLate is a request whose caller has left.
func (m *fairModel) askLate(t *rapid.T) {
	window := windows.Draw(t, "window")
	m.request(
		t,
		lua.FairRequest{
			Owner:  anyQueuer.Draw(t, "owner"),
			Count:  1,
			Lease:  leases.Draw(t, "lease"),
			Waits:  true,
			Window: window,
			Budget: window,
			Until:  longAgo,
		},
	)
}

func (m *fairModel) request(t *rapid.T, r lua.FairRequest) {
	attempt(t, m.program, func() (*lua.Holder, error) {
		return m.lock.Acquire(t.Context(), m, r)
	}, func(holder *lua.Holder) {
		m.requireHolder(t, m.asks(t, r), holder)
		if holder != nil {
			require.InDelta(t, m.now, holder.Clock.UnixMilli(), float64(m.slack+rounding))
		}
	})
}

// live lets time pass in which all our waiters listen and ask as often as they must. The holder may
// or may not renew its lease. Waiters that do so from the beginning never lose their place.
func (m *fairModel) live(t *rapid.T) {
	renews := rapid.Bool().Draw(t, "holder renews")
	for range rapid.IntRange(1, 8).Draw(t, "rounds") {
		for _, owner := range rapid.Permutation([]string{anna, bert, cleo}).Draw(t, "order") {
			if m.lost {
				return
			}
			if i := m.place(owner); i >= 0 {
				m.listenFor(t, owner, true)
				m.ask(t, owner, true)
			}
		}
		if renews {
			m.renew(t)
		}
		m.pass(t, evenly(time.Second, 3*time.Second, lua.LongestSleep).Draw(t, "sleep"))
	}
}

// allAsk has all our owners ask, in any order.
func (m *fairModel) allAsk(t *rapid.T) {
	for _, owner := range rapid.Permutation(queuers).Draw(t, "order") {
		if !m.lost {
			m.ask(t, owner, true)
		}
	}
}

// allLeave has all our owners leave at once, and others ask before.
func (m *fairModel) allLeave(t *rapid.T) {
	if m.allAsk(t); !m.lost {
		m.javaAsks(t, true)
	}
	if !m.lost {
		m.leave(t, 0, queuers...)
	}
}

// clientHangs has one client listen for its waiters, which do not come when it is their turn.
func (m *fairModel) clientHangs(t *rapid.T) {
	for _, owner := range []string{anna, dora, emil} {
		if !m.lost {
			m.listenFor(t, owner, true)
			m.ask(t, owner, true)
		}
	}
	for range 5 {
		if !m.lost {
			m.ask(t, bert, rapid.Bool().Draw(t, "waits"))
			m.pass(t, evenly(150*time.Millisecond, 600*time.Millisecond, 12*time.Second).Draw(t, "sleep"))
		}
	}
}

func (m *fairModel) releaseOrLeave(t *rapid.T) {
	count := evenly(0, 0, 1).Draw(t, "count")
	all := []string{anyQueuer.Draw(t, "owner")}
	if count == 0 {
		for range rapid.IntRange(0, 2).Draw(t, "others") {
			all = append(all, anyQueuer.Draw(t, "also"))
		}
	}
	m.leave(t, count, all...)
}

func (m *fairModel) leave(t *rapid.T, count int, all ...string) {
	attempt(t, m.program, func() (lua.Released, error) {
		return m.lock.Release(t.Context(), m, count, all...)
	}, func(out lua.Released) {
		held := slices.Contains(all, m.owner)
		require.Equal(t, lua.Released{Held: held}, out)
		if count > 0 {
			if held {
				m.count = count
			}
			return
		}
		if held {
			m.free()
			m.turn = nil
		}
		leaving := map[string]bool{}
		for _, owner := range all {
			if i := m.place(owner); i >= 0 && m.queue[i].score != nil {
				leaving[owner] = true
			}
		}
		for _, owner := range all {
			delete(m.budgets, owner)
		}
		if len(m.budgets) == 0 {
			m.forgetBudgets()
		}
		resigns := m.turn != nil && slices.Contains(all, m.turn.whose.owner)
		another := m.sweep(t, leaving)
		switch {
		case m.owner != "" && another:
			m.advise(m.left(), false)
		case m.owner == "" && (another || held || resigns):
			m.turn = nil
			m.offer(t, "")
		}
	})
}

func (m *fairModel) forceUnlockAndTell(t *rapid.T) {
	attempt(t, m.program, func() (lua.Released, error) {
		return m.lock.ForceUnlock(t.Context(), m)
	}, func(out lua.Released) {
		require.Equal(t, lua.Released{Held: m.owner != ""}, out)
		if out.Held {
			m.free()
			m.turn = nil
		}
		m.sweep(t, nil)
		m.offer(t, "")
	})
}

func (m *fairModel) inspectQueue(t *rapid.T) {
	attempt(t, m.program, func() (lua.State, error) {
		return lua.InspectFair(t.Context(), m, lock)
	}, func(state lua.State) {
		m.requireState(t, state)
		require.Len(t, state.Queue, len(m.queue))
		for i, w := range m.queue {
			require.Equal(t, w.owner, state.Queue[i])
		}
	})
}

func (m *fairModel) hear(t *rapid.T, listens bool) {
	m.listenFor(t, evenly(append(slices.Clone(queuers), java)...).Draw(t, "owner"), listens)
}

func (m *fairModel) listenFor(t require.TestingT, owner string, listens bool) {
	if m.listening[owner] != listens {
		m.listening[owner] = listens
		m.subscribe(
			t,
			map[bool]string{true: "SUBSCRIBE", false: "UNSUBSCRIBE"}[listens],
			wire.FairChannel(lock, owner),
		)
	}
}

// javaPurges drops stale heads as Redisson does at the start of each command.
func (m *fairModel) javaPurges(t *rapid.T) (commands [][]string) {
	before := m.queue
	for len(m.queue) > 0 && m.stale(m.queue[0]) {
		m.lose(t)
	}
	for _, w := range before[:len(before)-len(m.queue)] {
		commands = append(commands, []string{"LPOP", queueName}, []string{"ZREM", scoresName, w.owner})
	}
	return commands
}

// javaShifts subtracts a window from all scores from an index on.
func (m *fairModel) javaShifts(from int, window int64) (commands [][]string) {
	for _, w := range m.queue[from:] {
		w.bring(window)
		if w.score != nil {
			commands = append(
				commands,
				[]string{"ZINCRBY", scoresName, strconv.FormatInt(-window, 10), w.owner},
			)
		}
	}
	return commands
}

// javaAsks takes the lock if it is free and none is queued before, or else queues.
func (m *fairModel) javaAsks(t *rapid.T, waits bool) {
	lease, window := leases.Draw(t, "lease"), windows.Draw(t, "window").Milliseconds()
	m.plainly(t, func() [][]string {
		commands := m.javaPurges(t)
		switch place := m.place(java); {
		case m.owner == java:
		case m.owner == "" && (len(m.queue) == 0 || place == 0):
			if place == 0 {
				window = m.queue[0].window
				m.queue = m.queue[1:]
				commands = append(commands, []string{"LPOP", queueName}, []string{"ZREM", scoresName, java})
				commands = append(commands, m.javaShifts(0, window)...)
			}
			m.hold(java, 1, lease)
			commands = append(
				commands,
				[]string{"HSET", lock, java, "1"},
				[]string{"PEXPIRE", lock, ms(lease)},
			)
		case waits && place < 0:
			score := m.now + m.leftOrFree().Milliseconds() + window
			if n := len(m.queue); n > 0 && m.queue[n-1].score != nil {
				score = *m.queue[n-1].score + window
			}
			m.queue = append(m.queue, &waiter{owner: java, score: &score, window: window})
			commands = append(commands, []string{"RPUSH", queueName, java},
				[]string{"ZADD", scoresName, strconv.FormatInt(score, 10), java})
		}
		return commands
	})
}

func (m *fairModel) javaGivesUp(t *rapid.T) {
	m.plainly(t, func() [][]string {
		i := m.place(java)
		if i < 0 || m.queue[i].score == nil {
			return nil
		}
		window := m.queue[i].window
		m.queue = append(m.queue[:i:i], m.queue[i+1:]...)
		return append(
			m.javaShifts(i, window),
			[]string{"ZREM", scoresName, java},
			[]string{"LREM", queueName, "0", java},
		)
	})
}

func (m *fairModel) javaReleasesAndTells(t *rapid.T) {
	m.plainly(t, func() [][]string {
		if m.owner != java {
			return nil
		}
		m.free()
		commands := append(m.javaPurges(t), []string{"DEL", lock})
		if len(m.queue) > 0 {
			commands = append(commands, []string{"PUBLISH", wire.FairChannel(lock, m.queue[0].owner), "0"})
		}
		return commands
	})
}

// javaBarges takes a free lock as a reentrant lock, which knows no queue; now and then without
// expiry.
func (m *fairModel) javaBarges(t *rapid.T) {
	lease, forever := leases.Draw(t, "lease"), rarely.Draw(t, "forever")
	m.plainly(t, func() [][]string {
		if m.owner != "" || m.place(java) >= 0 {
			return nil
		}
		m.hold(java, 1, lease)
		commands := [][]string{{"HSET", lock, java, "1"}, {"PEXPIRE", lock, ms(lease)}}
		if forever {
			m.ends = nil
			commands = append(commands, []string{"PERSIST", lock})
		}
		return commands
	})
}

// loseScore takes the head's score away, which Redisson has been seen to do.
func (m *fairModel) loseScore(t *rapid.T) {
	m.plainly(t, func() [][]string {
		if len(m.queue) == 0 || m.queue[0].score == nil || m.queue[0].owner != java {
			return nil
		}
		m.queue[0].score = nil
		return [][]string{{"ZREM", scoresName, m.queue[0].owner}}
	})
}
