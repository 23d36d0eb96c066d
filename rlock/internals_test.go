package rlock

import (
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/watchdog"
)

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
