package rlock

import (
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/transport"
	"holdfast/lua"
	"holdfast/watchdog"
)

func TestPauseIsNeverZeroAndNeverLongerThanFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := new(known)
		for ttl, pause := range map[time.Duration]time.Duration{
			0:                       time.Millisecond,
			time.Nanosecond:         time.Millisecond,
			1234 * time.Millisecond: 1234 * time.Millisecond,
			time.Hour:               5 * time.Second,
			NoExpiry:                5 * time.Second,
		} {
			k.update(lua.Holder{Owner: "another:7", TTL: ttl})
			require.Equal(t, pause, k.pause(), "%v left", ttl)
		}
		k.update(lua.Holder{Owner: "another:7", TTL: 10 * time.Second})
		time.Sleep(4 * time.Second)
		require.Equal(t, lua.Holder{Owner: "another:7", TTL: 6 * time.Second}, k.lastHolder())
		time.Sleep(time.Minute)
		require.Equal(t, lua.Holder{Owner: "another:7"}, k.lastHolder())
		k.update(lua.Holder{Owner: "another:7", TTL: NoExpiry})
		time.Sleep(time.Minute)
		require.Equal(t, NoExpiry, k.lastHolder().TTL)
	})
}

func TestConcurrentCallsForTheInnermostLevelGetOneEach(t *testing.T) {
	outer, inner := new(level), new(level)
	a := &acquisition{levels: []*level{outer, inner}}
	require.Same(t, inner, a.beginInnermost())
	require.Same(t, outer, a.beginInnermost())
	require.Nil(t, a.beginInnermost())
}

func TestDirectoryRemembersAThousandClients(t *testing.T) {
	c := &Client{}
	d := directory{client: c}
	for i := range 1500 {
		d.enter(strconv.Itoa(i), Identity{PID: 1 + i})
	}
	require.Len(t, d.entries, 1000)
	found, ask := d.find("1499:7")
	require.Equal(t, 1500, found.PID)
	require.False(t, ask)
	_, ask = d.find("somebody without a number")
	require.False(t, ask)
}

func TestIntroductionThatHasEndedStartsNothing(t *testing.T) {
	in := new(introduction)
	in.begin(&Client{transport: transport.New(idle{}, transport.Options{})})
	in.end(true)
	in.used()
	require.Nil(t, in.sent, "no command")
	in.heard(nil)
	require.Nil(t, in.timer, "one that was under way")
}

// Whatever comes first, Detach or the loss, the hold has ended when Detach returns.
func TestHoldThatIsLostWhileItIsDetachedEnds(t *testing.T) {
	c, err := New(idle{}, Options{Logger: slog.New(slog.DiscardHandler), Anonymous: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(t.Context())) }()
	l := c.NewLock("order")
	for range 5000 {
		a := &acquisition{client: c, lock: l, owner: "me:1"}
		a.session = &a.home
		c.sessions.OpenNew(a.session, l.key(7))
		h := a.begin(t.Context(), time.Now().Add(time.Hour), false)
		lost := make(chan struct{})
		go func() {
			defer close(lost)
			a.lose(watchdog.ErrGone)
		}()
		_, err := h.Detach()
		require.Error(t, h.Err())
		require.Equal(t, err != nil, errors.Is(h.Err(), ErrLost))
		<-lost
	}
}

// idle is a rueidis client that is not asked for anything.
type idle struct{ rueidis.Client }

func (idle) Nodes() map[string]rueidis.Client { return nil }
func (idle) Mode() rueidis.ClientMode         { return rueidis.ClientModeStandalone }

// The allocator has sizes of 640 and 704 bytes, and puts 8 of its own in front.
func TestAcquisitionIsNoLargerThanItsSizeClass(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(acquisition{}), uintptr(640-8))
}
