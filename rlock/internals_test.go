package rlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestBackoffDoublesFrom10MillisecondsTo1Second(t *testing.T) {
	var b backoff
	for _, milliseconds := range []int{10, 20, 40, 80, 160, 320, 640, 1000, 1000} {
		longest := time.Duration(milliseconds) * time.Millisecond
		delay := b.next()
		require.GreaterOrEqual(t, delay, longest/2)
		require.LessOrEqual(t, delay, longest)
	}
}

func TestPatienceEndsWithItsContextItsTimeOrTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{closing: make(chan struct{})}
		awake := make(chan struct{}, 1)

		timed := c.patience(t.Context(), time.Second)
		defer timed.stop()
		require.True(t, timed.sleep(300*time.Millisecond, awake))
		awake <- struct{}{}
		require.True(t, timed.sleep(time.Hour, awake))
		start := time.Now()
		require.False(t, timed.sleep(time.Hour, awake))
		require.Equal(t, 700*time.Millisecond, time.Since(start))
		require.NoError(t, timed.reason(), "its time being over needs no explanation")

		reason := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancelled := c.patience(ctx, unlimited)
		cancel(reason)
		require.False(t, cancelled.sleep(time.Hour, awake))
		require.ErrorIs(t, cancelled.reason(), context.Canceled)
		require.ErrorIs(t, cancelled.reason(), reason)

		endless := c.patience(context.Background(), unlimited)
		close(c.closing)
		require.False(t, endless.sleep(time.Hour, awake))
		require.ErrorIs(t, endless.reason(), ErrClosed)
	})
}

func TestParkIsNeverNothingAndNeverLongerThanFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLines(nil).join(call{}, heir{}, false).line
		for ttl, park := range map[time.Duration]time.Duration{
			0:                       time.Millisecond,
			time.Nanosecond:         time.Millisecond,
			1234 * time.Millisecond: 1234 * time.Millisecond,
			time.Hour:               5 * time.Second,
			NoExpiry:                5 * time.Second,
		} {
			q.answered(lua.Holder{Owner: "another:7", TTL: ttl})
			require.Equal(t, park, q.park(), "%v left", ttl)
		}
		q.answered(lua.Holder{Owner: "another:7", TTL: 10 * time.Second})
		time.Sleep(4 * time.Second)
		require.Equal(t, lua.Holder{Owner: "another:7", TTL: 6 * time.Second}, q.expectation())
		time.Sleep(time.Minute)
		require.Equal(t, lua.Holder{Owner: "another:7"}, q.expectation())
		q.answered(lua.Holder{Owner: "another:7", TTL: NoExpiry})
		time.Sleep(time.Minute)
		require.Equal(t, NoExpiry, q.expectation().TTL)
	})
}

func TestHeadHandsItsPlaceToTheNextInLine(t *testing.T) {
	lines := newLines(&wire{})
	lock := call{line: lineName{"lock", "name"}}
	require.Nil(t, lines.join(lock, heir{}, true), "nobody waits")
	join := func() *spot { return lines.join(lock, heir{}, false) }
	head, second, third := join(), join(), join()
	require.Nil(t, head.line.wakeUps(), "without a hub nothing ever wakes")
	require.True(t, head.first)
	client := &Client{closing: make(chan struct{})}
	short := client.patience(t.Context(), time.Millisecond)
	defer short.stop()
	long := client.patience(t.Context(), time.Minute)
	defer long.stop()

	what, _ := third.await(short)
	require.Equal(t, over, what)
	second.leave(true) // not the head: nobody is to be told
	require.Empty(t, third.head)
	head.leave(false)
	what, _ = third.await(long)
	require.Equal(t, heads, what)
	third.leave(true)
	require.Empty(t, lines.byName)
}

func TestSeatIsSharedByItsOwnersCallsAndForgottenAfterTheLast(t *testing.T) {
	r := newRegistry()
	p := place{lock: "lock", token: 7}
	first, second := r.enter(p), r.enter(p)
	require.Same(t, first, second)
	require.NotSame(t, first, r.enter(place{lock: "lock", token: 8}))

	client := &Client{closing: make(chan struct{})}
	patience := client.patience(t.Context(), time.Millisecond)
	defer patience.stop()
	require.True(t, first.claim(patience))
	require.False(t, second.claim(patience), "one at a time")
	first.pass()
	require.True(t, second.claim(patience))
	second.pass()

	h := &holding{lock: &Lock{}}
	first.hold(h)
	require.Same(t, h, r.find(p, exclusive))
	require.Equal(t, []*holding{h}, r.holdings())
	first.leave()
	second.leave()
	require.Same(t, first, r.enter(p), "a holding keeps its seat")
	first.leave()
	first.drop(h)
	first.drop(h) // harmless
	require.Nil(t, r.find(p, exclusive))
	require.NotSame(t, first, r.enter(p))
}

func TestTasksMayStartOthersUntilTheLastHasEnded(t *testing.T) {
	tasks := newTasks()
	release, started := make(chan struct{}), make(chan bool)
	require.True(t, tasks.start(func() {
		<-release
		started <- tasks.start(func() {})
	}))
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		tasks.wait()
	}()
	require.Empty(t, waited)
	close(release)
	require.True(t, <-started, "what is under way may start what it takes to end well")
	<-waited
	require.False(t, tasks.start(func() { t.Error("started after the end") }))
	require.False(t, tasks.enter())
}

func TestJanitorOfAClosedClientDoesNothing(t *testing.T) {
	c := &Client{tasks: newTasks()}
	c.tasks.wait()
	j := &janitor{client: c}
	j.add(leftover{})
	require.Empty(t, j.pending)
	require.False(t, j.working)
}

// ownersOf returns the owners of each batch of a round.
func ownersOf(round [][]leftover) (owners [][]string) {
	for _, batch := range round {
		var of []string
		for _, l := range batch {
			of = append(of, l.bid.owner)
		}
		owners = append(owners, of)
	}
	return owners
}

func TestARoundOfTheJanitor(t *testing.T) {
	j := newJanitor(&Client{})
	plain, queue, another := &Lock{name: "job", standing: "lock", kind: reentrant{}}, &Lock{name: "job", standing: "fair", kind: fair{}},
		&Lock{name: "another", standing: "fair", kind: fair{}}
	of := func(l *Lock, owner string, at *seat) leftover {
		return leftover{lock: l, seat: at, bid: bid{owner: owner}}
	}
	many := func(n int) []leftover { return slices.Repeat([]leftover{of(plain, "", nil)}, n) }
	t.Run("has what one command releases in one batch", func(t *testing.T) {
		j.pending = []leftover{of(queue, "1", nil), of(plain, "2", nil), of(queue, "3", nil), of(another, "4", nil), of(plain, "5", nil), of(queue, "6", nil)}
		round, _, _ := j.next(false)
		require.Equal(t, [][]string{{"1", "3", "6"}, {"2"}, {"4"}, {"5"}}, ownersOf(round))
		require.Empty(t, j.pending)
	})
	t.Run("has one of each seat", func(t *testing.T) {
		at := new(seat)
		j.pending = []leftover{of(plain, "1", at), of(plain, "2", new(seat)), of(plain, "3", at), of(plain, "4", nil)}
		round, _, _ := j.next(false)
		require.Equal(t, [][]string{{"1"}, {"2"}, {"4"}}, ownersOf(round))
		round, _, _ = j.next(false)
		require.Equal(t, [][]string{{"3"}}, ownersOf(round))
	})
	t.Run("has a bounded number of batches", func(t *testing.T) {
		j.pending = append(many(mostAtOnce-1), of(queue, "1", nil), of(plain, "2", nil), of(queue, "3", nil), of(another, "4", nil))
		round, _, _ := j.next(false)
		require.Len(t, round, mostAtOnce)
		require.Equal(t, [][]string{{"1", "3"}}, ownersOf(round[mostAtOnce-1:]))
		round, _, _ = j.next(false)
		require.Equal(t, [][]string{{"2"}, {"4"}}, ownersOf(round))
	})
	t.Run("has first what came first, and then what is due", func(t *testing.T) {
		j.pending, j.again = []leftover{of(plain, "1", nil)}, []leftover{of(plain, "2", nil)}
		round, _, _ := j.next(false)
		require.Equal(t, [][]string{{"1"}, {"2"}}, ownersOf(round))
	})
	t.Run("leaves what is due later, unless all is set", func(t *testing.T) {
		later := of(plain, "2", nil)
		later.due = time.Now().Add(time.Hour)
		j.pending, j.again = nil, []leftover{of(plain, "1", nil), later}
		round, _, _ := j.next(false)
		require.Equal(t, [][]string{{"1"}}, ownersOf(round))
		round, pause, ok := j.next(false)
		require.True(t, ok)
		require.Positive(t, pause)
		require.Empty(t, round)
		round, pause, ok = j.next(true)
		require.True(t, ok)
		require.Zero(t, pause)
		require.Equal(t, [][]string{{"2"}}, ownersOf(round))
		_, _, ok = j.next(true)
		require.False(t, ok)
	})
}

// slow is a kind whose releases take some time, and fail for some owners.
type slow struct {
	kind
	most     int
	takes    time.Duration
	released func(owner string) error
}

func (k slow) withdraw(_ rueidis.CoreClient, bids ...bid) (reply lua.Released, err error) {
	time.Sleep(k.takes)
	for _, b := range bids {
		err = errors.Join(err, k.released(b.owner))
	}
	return reply, err
}

func (k slow) batch() int { return k.most }

// newCleaner returns a client that has a janitor and nothing else.
func newCleaner(t *testing.T) *Client {
	t.Helper()
	c := &Client{redis: goneRedis{}, tasks: newTasks(), closing: make(chan struct{})}
	c.janitor = newJanitor(c)
	t.Cleanup(func() {
		close(c.closing)
		c.tasks.wait()
	})
	return c
}

func TestJanitorReleasesManyWhileOneAnswerComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 3000
		c := newCleaner(t)
		began, left := time.Now(), many
		var took time.Duration
		var mu sync.Mutex
		l := &Lock{client: c, name: "job", kind: slow{most: 1, takes: 10 * time.Millisecond, released: func(string) error {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				took = time.Since(began)
			}
			return nil
		}}}
		for range many {
			c.janitor.add(leftover{lock: l, until: began.Add(time.Hour)})
		}
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		require.Zero(t, left)
		require.Less(t, took, time.Second, "one after the other takes 30 s")
	})
}

// As on a cluster of which one shard refuses.
func TestReleaseThatIsRefusedDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCleaner(t)
		l := &Lock{client: c, name: "job", kind: slow{most: 1, takes: time.Millisecond, released: func(string) error { return nil }}}
		var tries atomic.Int64
		refusing := &Lock{client: c, name: "refused", kind: slow{most: 1, released: func(string) error {
			tries.Add(1)
			return &lua.Error{Class: lua.Temporary}
		}}}
		c.janitor.add(leftover{lock: refusing, until: time.Now().Add(10 * time.Second)})
		for range 1000 {
			c.janitor.add(leftover{lock: l, until: time.Now().Add(time.Hour)})
			time.Sleep(5 * time.Millisecond)
			c.janitor.mu.Lock()
			waiting := len(c.janitor.pending)
			c.janitor.mu.Unlock()
			require.Zero(t, waiting)
		}
		time.Sleep(time.Minute)
		require.Greater(t, tries.Load(), int64(40), "four in a second")
		require.Less(t, tries.Load(), int64(100))
	})
}

// During an outage they pile up. When it is over, none of them may keep others out for long.
func TestJanitorIsThroughSoonAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, outage = 2000, 3 * time.Second
		c := newCleaner(t)
		began := time.Now()
		var tries atomic.Int64
		l := &Lock{client: c, name: "job", kind: slow{most: 1, released: func(string) error {
			tries.Add(1)
			if time.Since(began) < outage {
				return &lua.Error{Class: lua.Temporary}
			}
			return nil
		}}}
		for range many {
			c.janitor.add(leftover{lock: l, until: began.Add(time.Hour)})
		}
		time.Sleep(outage)
		require.Less(t, tries.Load(), int64(10*many), "it keeps a processor busy")
		time.Sleep(time.Second)
		c.janitor.mu.Lock()
		defer c.janitor.mu.Unlock()
		require.False(t, c.janitor.working)
	})
}

// Of a server that is down for long there would be more and more.
func TestJanitorForgetsWhatIsOver(t *testing.T) {
	c := newCleaner(t)
	var released []string
	l := &Lock{client: c, name: "job", kind: slow{most: 10, released: func(owner string) error {
		released = append(released, owner)
		return nil
	}}}
	of := func(owner string, until time.Duration) leftover {
		return leftover{lock: l, bid: bid{owner: owner}, until: time.Now().Add(until)}
	}
	require.True(t, c.janitor.releaseAll([][]leftover{{of("1", 0), of("2", time.Hour), of("3", 0)}, {of("4", 0)}}, false))
	require.Equal(t, []string{"2"}, released)
	require.Empty(t, c.janitor.pending)
	require.Empty(t, c.janitor.again)
}

// goneRedis panics if something is sent.
type goneRedis struct{ rueidis.Client }

func (goneRedis) Mode() rueidis.ClientMode { return rueidis.ClientModeStandalone }

// It may have taken a place as well, which is found by what was asked for.
func TestWhatIsAdriftIsUndoneAsItWasAskedFor(t *testing.T) {
	c := &Client{options: Options{WatchdogLease: time.Second}}
	c.janitor = newJanitor(c)
	c.janitor.working = true // so that it is looked at here
	asked := bid{owner: "client:1", window: time.Minute, enlists: true, gift: time.Second}
	g := &holding{client: c, lock: &Lock{kind: reentrant{}}, owner: "client:1", adrift: &asked}
	began := time.Now()
	g.undoAdrift()
	require.Len(t, c.janitor.pending, 1)
	l := c.janitor.pending[0]
	require.Equal(t, asked, l.bid)
	require.True(t, l.adrift)
	require.False(t, l.until.Before(began.Add(placeKept)))
}

// It doubles from 10 ms at first, then grows with what it is about.
func TestWhatIsAdriftIsReleasedTheMoreSeldomTheOlderItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJanitor(&Client{})
		began, times := time.Now(), 0
		l := leftover{lock: &Lock{kind: reentrant{}}, adrift: true, until: began.Add(48 * time.Hour)}
		j.repeat(l)
		for time.Since(began) < 24*time.Hour {
			round, pause, ok := j.next(false)
			require.True(t, ok)
			if pause > 0 {
				age := time.Since(began)
				require.LessOrEqual(t, pause, max(time.Second, age/4))
				time.Sleep(pause)
				continue
			}
			times++
			j.repeat(round[0][0])
		}
		require.Greater(t, times, 40)
		require.Less(t, times, 100)
	})
}

func TestCallersThatLeaveTheInnermostLevelAtOnceGetOneEach(t *testing.T) {
	outer, inner := new(Hold), new(Hold)
	h := &holding{levels: []*Hold{outer, inner}}
	require.Same(t, inner, h.leaveInnermost())
	require.Same(t, outer, h.leaveInnermost())
	require.Nil(t, h.leaveInnermost())
}

func TestTasksTakeNoNewCallersOnceTheEndIsWaitedFor(t *testing.T) {
	tasks := newTasks()
	require.True(t, tasks.enter())
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		tasks.wait()
	}()
	require.Eventually(t, func() bool {
		if !tasks.enter() {
			return true
		}
		tasks.leave()
		return false
	}, time.Second, time.Millisecond)
	require.True(t, tasks.start(func() {}), "what is under way may start others")
	tasks.leave()
	<-waited
}

// A waiter has two places one after the other if the keys are lost in between, and may hear of them in any order.
func TestAnswerToAReleaseFromBeforeTheLastQuestionIsNoTicket(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	begin := func() (*lines, *spot, offer) {
		ls := newLines(&wire{options: Options{HandOver: HandOverToAll}})
		s := ls.join(call{line: lineName{"lock", "order"}, places: true}, heir{owner: "me:1"}, false)
		o := ls.offer(s.line.call.line, journey{})
		require.Same(t, s, o.spot)
		s.asks()
		s.hears(2, at(2))
		return ls, s, o
	}
	given := func(s *spot) bool { return len(s.gifts) > 0 }
	looks := func(s *spot) bool { return len(s.head) > 0 && <-s.head }

	ls, s, o := begin()
	require.False(t, o.settle(at(1), lua.Released{Held: true, To: lua.Other, Ticket: 1}, nil))
	require.True(t, looks(s))
	require.True(t, ls.gift(lua.Gift{Lock: "order", Owner: "me:1", Ticket: 2}))
	require.True(t, given(s))

	ls, s, o = begin()
	require.False(t, o.settle(at(3), lua.Released{Held: true, To: lua.Other, Ticket: 3}, nil))
	require.True(t, ls.gift(lua.Gift{Lock: "order", Owner: "me:1", Ticket: 2}), "an older one")
	require.False(t, given(s))
	require.False(t, looks(s))
	require.True(t, ls.gift(lua.Gift{Lock: "order", Owner: "me:1", Ticket: 4}), "one that it does not know of")
	require.False(t, given(s))
	require.True(t, looks(s), "Redis says which is right")
}

// Its connection may be down just when it gets the lock by asking: nobody else would give its place up then.
func TestWaiterThatMayHaveAPlaceAsksWithItThoughItDoesNotListen(t *testing.T) {
	s := newLines(&wire{options: Options{HandOver: HandOverToAll}}).join(call{line: lineName{"lock", "order"}, places: true}, heir{owner: "me:1"}, false)
	require.False(t, s.asks(), "nobody would hear that it was given the lock")
	s.hears(0, time.Now())
	s.place = true
	require.True(t, s.asks())
}
