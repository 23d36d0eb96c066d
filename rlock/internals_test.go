package rlock

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/internal/rediserr"
	"holdfast/internal/session"
	"holdfast/internal/transition"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/lua"
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
	c, err := New(idleRedis{}, Options{Logger: slog.New(slog.DiscardHandler), Anonymous: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(t.Context())) }()
	l := c.NewLock("order")
	for range 5000 {
		a := &acquisition{client: c, lock: l, owner: "me:1"}
		a.session = &a.home
		c.sessions.OpenNew(a.session, sessionKey{l.family, l.name, 7})
		h := a.newHold(t.Context(), &a.outermost, false)
		a.enter(time.Now().Add(time.Hour), false)
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

// The allocator has sizes of 640 and 704 bytes, and puts 8 of its own in front.
func TestAcquisitionIsNoLargerThanItsSizeClass(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(acquisition{}), uintptr(640-8))
}

// Code that resumes after a pause may call Valid before any timer has fired, for which a closed
// watchdog stands here.
func TestValidReadsTheClockItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchdog.New(watchdog.Options{Lease: time.Minute, Renew: (&Client{}).renew})
		h := &acquisition{}
		level := &Hold{level: &level{acquisition: h}}
		w.Add(&h.watched, time.Now().Add(time.Second), false)
		w.Close()
		time.Sleep(time.Second - time.Nanosecond)
		require.True(t, level.Valid())
		time.Sleep(time.Nanosecond)
		require.False(t, level.Valid())
		require.NoError(t, level.Err(), "the level has not ended")
	})
}

// These tests have a model of an acquisition: levels come and go, the watchdog loses it, its client
// closes, and the last release gets every kind of reply, also when nobody waits for it any more.

// scripted is a kind of lock whose releases get the replies of a test.
type scripted struct {
	*exclusive
	reply func() (lua.Released, error)
}

func (k scripted) release(context.Context, string, int, offer) (lua.Released, error) {
	return k.reply()
}

func (k scripted) cleanUp([]cleanup) (lua.Released, error) { return lua.Released{}, nil }

// idleRedis is a single server that nothing is sent to.
type idleRedis struct{ goneRedis }

func (idleRedis) Nodes() map[string]rueidis.Client { return nil }

// modelAcquisition is an acquisition, and what is known of it.
type modelAcquisition struct {
	client *Client
	a      *acquisition
	holds  []*Hold
	ended  bool // by a loss or by Close
	err    error
	over   bool        // the last level was released, with err, or left
	left   bool        // the last level was left
	late   atomic.Bool // the reply comes when nobody waits any more: it was released
}

func newModelAcquisition(reply func() (lua.Released, error)) *modelAcquisition {
	c := &Client{
		redis:    idleRedis{},
		group:    wait.NewGroup(),
		closing:  make(chan struct{}),
		sessions: session.New[sessionKey, owned](),
		queues:   waitqueue.New[queueName, known](),
		owners:   acquisitionsByOwner{all: make(map[string][modes]*acquisition)},
	}
	c.log.client, c.log.inline = c, true
	c.options, _ = Options{CommandTimeout: time.Second,
		Logger: slog.New(slog.DiscardHandler)}.withDefaults()
	c.transport = transport.New(idleRedis{}, transport.Options{})
	c.calls = transport.NewCalls(c.group, c.options.CommandTimeout, c.transport.Ready)
	c.cleaner = newCleaner(c)
	c.watchdog = watchdog.New(watchdog.Options{Lease: time.Minute, Renew: c.renew})
	lock := c.newLock("order", traits{family: "lock"},
		scripted{newExclusive(c, "order", "lock", false), reply})
	m := &modelAcquisition{client: c}
	m.a = &acquisition{client: c, lock: lock, owner: "client:1",
		session: c.sessions.Open(sessionKey{lock.family, lock.name, 1})}
	m.holds = []*Hold{m.a.newHold(context.Background(), &m.a.outermost, false)}
	m.a.enter(time.Now().Add(time.Hour), false)
	return m
}

func (m *modelAcquisition) close() {
	m.client.watchdog.Close()
	close(m.client.closing)
	m.client.group.Wait()
}

// state returns the state of the acquisition, when nothing is in flight any more.
func (m *modelAcquisition) state() state {
	synctest.Wait()
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	return m.a.state
}

// check compares the state with what was reported.
func (m *modelAcquisition) check(t require.TestingT) {
	s := m.state()
	switch {
	case !m.over && !m.ended:
		require.Equal(t, active, s)
	case m.left && m.ended:
		require.Contains(t, []state{lost, closed}, s)
	case m.left:
		require.Equal(t, left, s)
	case errors.Is(m.err, ErrLost): // also of an acquisition whose lease ends after Close
		require.Contains(t, []state{lost, closed}, s)
	case m.over && m.err == nil:
		require.Equal(t, released, s)
	case m.over && m.late.Load():
		require.Equal(t, released, s)
	case m.over:
		require.Equal(t, unconfirmed, s)
	default:
		require.Contains(t, []state{lost, closed}, s)
	}
}

// What was done under the lock is over by then.
func TestLastLevelThatHasEndedIsNotLostAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModelAcquisition(
			func() (lua.Released, error) { return lua.Released{Held: true}, nil })
		defer m.close()
		m.a.registered = true
		m.holds[0].level.onEnd(func(error) { m.a.lose(watchdog.ErrExpired) })
		require.NoError(t, m.holds[0].Unlock())
		require.Equal(t, released, m.state())
		require.Empty(t, m.client.losses.Of(m.a.key()))
		_, releases := m.client.releasing.Load(m.a.owner)
		require.False(t, releases)
	})
}

// endedPart calls a function when the acquisition ends.
type endedPart func()

func (p endedPart) Ended(error)       { p() }
func (p endedPart) Renewed(time.Time) {}

// An owner that re-enters when it is told of the release starts afresh. It must not use the name in
// Redis that is being released.
func TestReleasedAcquisitionIsNotInItsSessionAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModelAcquisition(
			func() (lua.Released, error) { return lua.Released{Held: true}, nil })
		defer m.close()
		name := "the end is not told"
		m.a.part = endedPart(func() { m.a.session.Do(func(ow *owned) { name = ow.holder() }) })
		require.NoError(t, m.holds[0].Unlock())
		require.Empty(t, name)
	})
}

// The acquisition ends with the last level, before the command.
func TestNoLevelIsAddedWhileTheLastOneIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModelAcquisition(nil)
		defer m.close()
		require.True(t, m.holds[0].level.beginRelease())
		left, err := m.a.remove(m.holds[0].level, release)
		require.NoError(t, err)
		require.Zero(t, left)
		_, err = m.a.push(t.Context(), m.a.Deadline(), false)
		require.ErrorIs(t, err, ErrReleased)
		require.Nil(t, held(m.a.session, m.a.lock.mode))
		m.a.Drop()
	})
}

// The watchdog is late, so the reply to the nested lock finds the loss.
func TestNestedLockThatFindsTheLossLeavesNothingToUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModelAcquisition(nil)
		defer m.close()
		m.client.watchdog.Close()
		time.Sleep(time.Until(m.a.Deadline()))
		_, err := m.a.push(t.Context(), time.Now().Add(time.Hour), false)
		require.ErrorIs(t, err, ErrLost)
		require.ErrorIs(t, m.holds[0].Unlock(), ErrLost)
		require.Empty(t, m.client.losses.Of(m.a.key()))
	})
}

// runPrograms runs that many programs, each of which does anything that may happen to an
// acquisition, in some order. It stops at a transition that does not exist, and reports whether
// there was one.
func runPrograms(t *testing.T, programs int) bool {
	var bug atomic.Bool
	before := transition.Bug
	transition.Bug = func(string) { bug.Store(true) }
	defer func() { transition.Bug = before }()
	synctest.Test(t, func(t *testing.T) {
		program := rapid.Custom(func(rt *rapid.T) int {
			acquisitionProgram(t, rt, &bug)
			return 0
		})
		for seed := 0; seed < programs && !bug.Load(); seed++ {
			program.Example(seed)
		}
	})
	return bug.Load()
}

// acquisitionProgram does what rt draws, and checks it with t.
func acquisitionProgram(t *testing.T, rt *rapid.T, bug *atomic.Bool) {
	var (
		m       *modelAcquisition
		replies atomic.Pointer[[4]int] // replies to the next releases; later ones get none
		next    atomic.Int32
	)
	m = newModelAcquisition(func() (lua.Released, error) {
		unknown, how := &rediserr.Error{Class: rediserr.ClassUnknown}, 2
		if i := int(next.Add(1)) - 1; i < len(replies.Load()) {
			how = replies.Load()[i]
		}
		switch how {
		case 0:
			return lua.Released{Held: true}, nil
		case 1:
			return lua.Released{}, nil
		case 2:
			return lua.Released{}, unknown
		case 3:
			return lua.Released{}, &rediserr.Error{Class: rediserr.ClassPermanent}
		case 4:
			time.Sleep(time.Minute)
			return lua.Released{}, unknown
		default:
			time.Sleep(time.Minute)
			m.late.Store(true)
			return lua.Released{Held: true}, nil
		}
	})
	defer m.close()
	rt.Repeat(map[string]func(*rapid.T){
		"": func(*rapid.T) {
			if !bug.Load() {
				m.check(t)
			}
		},
		"nest": func(rt *rapid.T) {
			if m.over || m.ended || len(m.holds) == 3 {
				rt.Skip()
			}
			h, err := m.a.push(context.Background(), time.Now().Add(time.Hour), false)
			m.ended = err != nil
			if !m.ended {
				m.holds = append(m.holds, h)
			}
		},
		"unlock": func(rt *rapid.T) {
			if len(m.holds) == 0 {
				rt.Skip()
			}
			last := len(m.holds) - 1
			h := m.holds[last]
			m.holds = m.holds[:last]
			var drawn [4]int
			for i := range drawn {
				drawn[i] = rapid.IntRange(0, 5).Draw(rt, "reply")
			}
			replies.Store(&drawn)
			next.Store(0)
			m.late.Store(false)
			m.over = last == 0
			m.err = h.Unlock()
			m.ended = m.ended || errors.Is(m.err, ErrLost)
			time.Sleep(2 * time.Minute) // what is in flight ends
			require.ErrorIs(t, h.Unlock(), ErrNotHeld)
		},
		"leave": func(rt *rapid.T) {
			if len(m.holds) == 0 {
				rt.Skip()
			}
			last := len(m.holds) - 1
			h := m.holds[last]
			m.holds = m.holds[:last]
			m.over = last == 0
			m.left = m.over
			h.Leave()
			require.Error(t, h.Err())
			require.ErrorIs(t, h.Unlock(), ErrNotHeld)
		},
		"lose": func(rt *rapid.T) {
			if m.over {
				rt.Skip()
			}
			m.a.lose(watchdog.ErrExpired)
			m.ended = true
		},
		"close": func(rt *rapid.T) {
			if m.over {
				rt.Skip()
			}
			m.a.end(shut, ErrClosed)
			m.ended = true
		},
	})
}

func TestModelOfAcquisitions(t *testing.T) { require.False(t, runPrograms(t, 200)) }

// The model uses each transition: it notices when one is left out.
func TestModelOfAcquisitionsMissesEachTransitionThatIsLeftOut(t *testing.T) {
	all := transitions
	defer func() { transitions = all }()
	for s := range states {
		for e := range events {
			if all[s][e] == 0 || s == released { // a race of a reply with its caller's leaving
				continue
			}
			transitions[s][e] = 0
			require.True(t, runPrograms(t, 200), "nobody misses event %d in state %d", e, s)
			transitions[s][e] = all[s][e]
		}
	}
}

// The table in docs/configuration.md has each option, with its default and its least value.
func TestConfigurationListsEachOption(t *testing.T) {
	text, err := os.ReadFile("../docs/configuration.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "\n| field | effect | default |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| .* \\| (.*) \\|$")
	rows := row.FindAllStringSubmatch(table, -1)
	defaults, err := Options{}.withDefaults()
	require.NoError(t, err)
	require.Len(t, rows, reflect.ValueOf(defaults).NumField())
	for _, row := range rows {
		is, isDuration := reflect.ValueOf(defaults).FieldByName(row[1]).Interface().(time.Duration)
		if !isDuration || row[2] == "no limit" {
			continue
		}
		parsed := func(text string) time.Duration {
			d, err := time.ParseDuration(strings.NewReplacer(" ", "", "min", "m").Replace(text))
			require.NoError(t, err, row[0])
			return d
		}
		said, least, _ := strings.Cut(row[2], ", at least ")
		require.Equal(t, is, parsed(said), row[0])
		for missing, invalid := range []bool{false, true} {
			o := Options{}
			reflect.ValueOf(&o).Elem().FieldByName(row[1]).SetInt(int64(parsed(least)) - int64(missing))
			_, err := o.withDefaults()
			require.Equal(t, invalid, errors.Is(err, ErrInvalid), row[0])
		}
	}
}
