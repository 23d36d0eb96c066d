package lua_test

import (
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/lua"
)

// The keys of a fair lock beside the lock itself.
const (
	queueName  = "redisson_lock_queue:{" + lock + "}"
	scoresName = "redisson_lock_timeout:{" + lock + "}"
	turnName   = "holdfast_lock_turn:{" + lock + "}"
)

// What a fair lock promises those who wait: how long they have to take their turn, if they listen and if they do not, and
// for how long a place is kept after a question.
const (
	listenersTurn = 10 * time.Second
	silentTurn    = 2 * time.Second
	outlasts      = 2 * lua.MaxNap
)

// fairModel is the model of a fair lock: the hold of an exclusive one, and a queue.
type fairModel struct {
	*exclusiveModel
	lock      lua.Fair
	queue     []*waiter
	turn      *chance
	listening map[string]bool
}

// waiter is one place in the queue.
type waiter struct {
	owner  string
	score  *int64 // nil: it has lost it
	window int64
	asked  int64 // when it last asked
	kept   bool  // it has done all that it must so as never to lose its place
}

// chance is the turn of a head of the queue.
type chance struct {
	whose              *waiter
	until, score, ends *int64
}

// left is what a head has of its turn still.
func (c *chance) left(head *waiter, now int64) time.Duration {
	if c == nil || c.whose != head {
		return 0
	}
	return time.Duration(*c.until-now) * time.Millisecond
}

func newFair(p *program, counted bool) *fairModel {
	m := &fairModel{
		exclusiveModel: newExclusive(p, false),
		lock:           lua.Fair{Lock: lock, Counted: counted},
		listening:      map[string]bool{},
	}
	p.model = m
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
	if m.turn != nil {
		k[turnName] = entry{text: m.turn.whose.owner, stamps: []*int64{m.turn.until, m.turn.score}, ends: m.turn.ends}
	}
	return k
}

func (m *fairModel) limits() []int64 {
	if m.turn == nil {
		return nil
	}
	return []int64{*m.turn.until}
}

func (m *fairModel) expire(now int64) {
	m.exclusiveModel.expire(now)
	if m.turn != nil && *m.turn.ends <= now {
		m.turn = nil
	}
	for _, w := range m.queue {
		const ofTheTest = 200 // milliseconds that a test may take over a question
		w.kept = w.kept && m.listening[w.owner] && now <= w.asked+lua.MaxNap.Milliseconds()+ofTheTest
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

// shift puts off the time of those from a place on. One that loses more by it than its own window, because somebody with a
// longer one left, is safe again only when it has asked again.
func (m *fairModel) shift(from int, by int64) {
	for _, w := range m.queue[from:] {
		if w.score != nil {
			*w.score += by
		}
		w.kept = w.kept && -by <= w.window
	}
}

// drop takes the head out of the queue, for good reason or by mistake.
func (m *fairModel) drop(t *rapid.T) {
	t.Helper()
	require.False(t, m.queue[0].kept, "%s listens and asks in time, and must not lose its place", m.queue[0].owner)
	m.queue = m.queue[1:]
}

// purge drops heads that have no score, or one that has passed.
func (m *fairModel) purge(t *rapid.T) {
	t.Helper()
	for len(m.queue) > 0 && (m.queue[0].score == nil || *m.queue[0].score <= m.now) {
		m.drop(t)
	}
}

// base is what the score of somebody who asks now counts from, at the given place: the one before, and at least the end of
// the lease.
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

// asks is an attempt of one of ours. It returns who is in the way.
func (m *fairModel) asks(t *rapid.T, owner string, lease time.Duration, waits bool, window time.Duration) *lua.Holder {
	t.Helper()
	if m.owner == owner {
		m.hold(owner, 1, lease)
		return nil
	}
	if i := m.place(owner); i >= 0 && m.queue[i].score != nil {
		w := m.queue[i]
		w.asked = m.now
		// The place must last until the next question and beyond. Those behind keep their distance.
		m.shift(i, max(0, m.base(i, outlasts)+w.window-*w.score))
		w.kept = m.listening[owner]
	}
	m.purge(t)
	holder := &lua.Holder{Owner: m.owner}
	if m.owner != "" {
		m.turn = nil // somebody came: the next has a turn of its own
		holder.TTL = m.left()
	} else {
		holder.Nap = m.offer(t, owner)
		if holder.Nap == 0 {
			m.take(t, owner, lease)
			return nil
		}
		holder.Owner, holder.Next = m.queue[0].owner, true
	}
	if waits && m.place(owner) < 0 {
		score := m.base(len(m.queue), 0) + window.Milliseconds()
		if n := len(m.queue); n > 0 && m.queue[n-1].score != nil {
			score = *m.queue[n-1].score + window.Milliseconds()
		}
		m.queue = append(m.queue, &waiter{owner: owner, score: &score, window: window.Milliseconds(), asked: m.now,
			kept: m.listening[owner] && window >= outlasts})
	}
	if m.owner != "" && len(m.queue) > 0 && m.queue[0].owner != owner {
		holder.Nap = lua.MaxNap // the end of the lease is the head's business
	}
	return holder
}

// take gives the free lock to an owner for which nobody in the queue is in the way.
func (m *fairModel) take(t *rapid.T, owner string, lease time.Duration) {
	t.Helper()
	for i, w := range m.queue[:max(0, m.place(owner))] {
		require.False(t, w.kept, "%s came before, at %d", w.owner, i)
	}
	if len(m.queue) > 0 {
		window := m.queue[0].window
		m.queue, m.turn = m.queue[1:], nil
		m.shift(0, -window)
	}
	m.hold(owner, 1, lease)
}

// offer tells the head that the lock is free. It returns for how long whoever asks must let it go first.
func (m *fairModel) offer(t *rapid.T, asking string) time.Duration {
	t.Helper()
	gone := false // the one before, because nobody listened for it
	for len(m.queue) > 0 && m.queue[0].owner != asking {
		head := m.queue[0]
		m.told = append(m.told, message{"PUBLISH", lua.FairChannel(lock, head.owner), "0"})
		patience := listenersTurn
		if m.lock.Counted && !m.listening[head.owner] {
			patience = silentTurn
		}
		left := m.turn.left(head, m.now)
		if left > 0 && left <= patience {
			return left
		}
		// Its turn begins, or somebody listened for it then and does not any more.
		if begins := m.turn == nil || m.turn.whose != head; left > 0 || begins && (!gone || patience == listenersTurn) {
			m.turn = &chance{whose: head, until: instant(m.now + patience.Milliseconds()), score: instant(*head.score),
				ends: instant(m.now + 2*listenersTurn.Milliseconds())}
			return patience
		}
		gone = patience == silentTurn
		m.drop(t)
	}
	return 0
}

// leaves takes an owner out of the queue. Its window is taken off those behind it.
func (m *fairModel) leaves(owner string, window int64) bool {
	i := m.place(owner)
	if i < 0 || m.queue[i].score == nil {
		return false
	}
	m.queue = slices.Delete(m.queue, i, i+1)
	m.shift(i, -window)
	return true
}

// requireDistances asserts that each in the queue comes at least its window after the one before: whoever leaves has that
// taken off all behind it.
func (m *fairModel) requireDistances(t *rapid.T) {
	t.Helper()
	for i, w := range m.queue[min(1, len(m.queue)):] {
		if before := m.queue[i]; before.score != nil && w.score != nil {
			require.GreaterOrEqual(t, *w.score-*before.score, w.window, "from %s to %s in %s", before.owner, w.owner, m.order())
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
