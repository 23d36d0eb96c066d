package rlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
	require.True(t, ls.gift(lua.Grant{Lock: "order", Owner: "me:1", Ticket: 2}))
	require.True(t, given(s))

	ls, s, o = begin()
	require.False(t, o.settle(at(3), lua.Released{Held: true, To: lua.Other, Ticket: 3}, nil))
	require.True(t, ls.gift(lua.Grant{Lock: "order", Owner: "me:1", Ticket: 2}), "an older one")
	require.False(t, given(s))
	require.False(t, looks(s))
	require.True(t, ls.gift(lua.Grant{Lock: "order", Owner: "me:1", Ticket: 4}), "one that it does not know of")
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
