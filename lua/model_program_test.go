//go:build redis

package lua_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/lua"
)

// A model says how a lock should behave. It is written from the promises of this package and of the
// protocol, without a look at Redis.
type model interface {
	// want returns all that should be in Redis.
	want() keyspace
	// limits returns times, other than scores and the ends of keys, at which the lock's behaviour
	// changes.
	limits() []int64
	// expire forgets what has ended by now.
	expire(now int64)
}

// The owners in random programs. Java's is played by plain commands, which do what Redisson does.
const (
	java = "b1a7c9d2-58b0-4c0e-8f3b-6b1f2f9d1c55:7"
	anna = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11:4611686018427387905"
	bert = "90a4cbd5-6c57-4b54-a6c4-3f1f40e0b3de:4611686018427387905"
	dora = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11:4611686018427387906"
	emil = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11:4611686018427387907"
	cleo = "c2d7b5a0-1b43-4d8e-9a57-60f0c9a1e77d:4611686018427387908"
)

var (
	ours   = evenly(anna, bert, cleo)
	leases = evenly(time.Second, 7*time.Second, 30*time.Second, 2*time.Minute)
	// spells has how much time passes at once.
	spells = evenly(
		40*time.Millisecond,
		500*time.Millisecond,
		1500*time.Millisecond,
		2500*time.Millisecond,
		5*time.Second,
		12*time.Second,
		time.Minute,
		10*time.Minute,
	)
	times  = evenly(1, 1, 1, 2)
	rarely = evenly(false, false, false, false, false, false, false, true)
)

// evenly draws each value equally often. The generators of rapid prefer the first ones.
func evenly[V any](values ...V) *rapid.Generator[V] {
	return rapid.Custom(func(t *rapid.T) V {
		n := 0
		for range 12 {
			n *= 2
			if rapid.Bool().Draw(t, "bit") {
				n++
			}
		}
		return values[n*len(values)>>12]
	})
}

const (
	// rounding is by how many milliseconds times that should be equal may differ.
	rounding = 2
	// stall is for how many milliseconds a script may be held up between two readings of the clock.
	// It may be longer only where the whole step takes as long.
	stall = 20
)

// program is a random program on an empty server, and the state it is compared with.
type program struct {
	*world
	model model
	now   int64     // the server's clock before the step
	slack int64     // how long the step took
	stall int64     // the longest delay of a script between two readings of the clock, in any step
	told  []message // what the model says was published in the step
	// lost is set when a time in the model came too close to a step to tell which was first: the
	// rest proves nothing.
	lost  bool
	steps *int
	// unsteady are keys that a second run of a command may change, because the first run has left
	// something behind that the second run finds. The model still says what the keys have then.
	unsteady []string
}

// rounds is the number of programs for each one that the flag -rapid.checks asks for.
const rounds = 2

type actions = map[string]func(*rapid.T)

// checkModel runs random programs of the actions that prepare makes for each of them. The action
// called "" asserts something about the model between two others.
func checkModel(t *testing.T, prepare func(t *rapid.T, p *program) actions) {
	t.Helper()
	t.Parallel()
	w := newWorld(t)
	steps, lost := 0, 0
	for range rounds {
		rapid.Check(t, func(t *rapid.T) {
			require.NoError(t, w.Client.Do(t.Context(), w.B().Flushall().Build()).Error())
			p := &program{world: w, stall: stall, steps: &steps}
			p.run(t, prepare(t, p))
			if p.lost {
				lost++
			}
		})
	}
	t.Logf("%d steps compared, %d programs aborted", steps, lost)
}

func (p *program) run(t *rapid.T, actions map[string]func(*rapid.T)) {
	t.Helper()
	actions["time passes"] = func(t *rapid.T) { p.pass(t, spells.Draw(t, "spell")) }
	check, ok := actions[""]
	if !ok {
		check = func(*rapid.T) {}
	}
	delete(actions, "")
	names := evenly(slices.Sorted(maps.Keys(actions))...)
	t.Repeat(map[string]func(*rapid.T){
		"": check,
		"step": func(t *rapid.T) {
			if !p.lost {
				actions[names.Draw(t, "what")](t)
			}
		},
	})
}

// step executes commands of the package, and lets the model say what they should have done.
// Sometimes it repeats them, like a caller without a reply: then nothing may change.
func (p *program) step(t *rapid.T, execute, expect func()) {
	t.Helper()
	var first map[string]string
	due := 0
	for range times.Draw(t, "times") {
		p.pass(t, 0)
		p.snapshots, p.world.told, p.told = nil, nil, nil
		execute()
		before, after := parse(t, p.snapshots[0]), parse(t, p.snapshots[len(p.snapshots)-1])
		again := first != nil && due == p.due(before.at) &&
			maps.Equal(first, before.keys.contents())
		if !p.begin(t, before, after.at) {
			return
		}
		expect()
		p.end(t, after)
		if p.lost {
			return
		}
		if again { // and no time came in between at which something changes
			steady := func(contents map[string]string) map[string]string {
				contents = maps.Clone(contents)
				maps.DeleteFunc(contents, func(key, _ string) bool { return slices.Contains(p.unsteady, key) })
				return contents
			}
			require.Equal(t, steady(first), steady(after.keys.contents()), "after the second run")
		}
		first, due = after.keys.contents(), p.due(after.at)
	}
}

// due returns how many times in the model have come.
func (p *program) due(now int64) (n int) {
	for _, limit := range p.limits() {
		if limit <= now {
			n++
		}
	}
	return n
}

// attempt is step for a call of the package, which must succeed.
func attempt[T any](t *rapid.T, p *program, call func() (T, error), expect func(T)) {
	t.Helper()
	var got T
	p.step(t, func() {
		var err error
		got, err = call()
		require.NoError(t, err)
	}, func() { expect(got) })
}

// plainly lets the model decide which plain commands another program executes, and executes them.
func (p *program) plainly(t *rapid.T, decide func() [][]string) {
	t.Helper()
	p.pass(t, 0)
	p.snapshots, p.world.told, p.told = nil, nil, nil
	p.batch(t.Context())
	before := parse(t, p.snapshots[0])
	if !p.begin(t, before, before.at+1) {
		return
	}
	var commands []rueidis.Completed
	for _, command := range decide() {
		commands = append(commands, p.B().Arbitrary(command...).Build())
	}
	for i, reply := range p.batch(t.Context(), commands...) {
		require.NoError(t, reply.Error(), "%v", commands[i])
	}
	after := parse(t, p.snapshots[len(p.snapshots)-1])
	p.slack = after.at - before.at
	p.end(t, after)
}

// begin compares the state before a step that ended at a given time. It returns false if the effect
// of the step is uncertain.
func (p *program) begin(t *rapid.T, before sighting, ended int64) bool {
	t.Helper()
	p.now, p.slack = before.at, ended-before.at
	p.stall = max(p.stall, p.slack)
	if p.uncertain() {
		return false
	}
	p.model.expire(p.now)
	p.model.want().adopt(t, before, rounding, "before the step")
	return true
}

func (p *program) end(t *rapid.T, after sighting) {
	t.Helper()
	if p.uncertain() {
		return
	}
	p.model.want().adopt(t, after, p.slack+rounding, "after the step")
	require.Equal(t, p.told, p.world.told, "messages")
	*p.steps++
}

// uncertain reports whether some time in the model came during the step, so that their order is
// unknown.
func (p *program) uncertain() bool {
	for _, limit := range p.limits() {
		p.lost = p.lost || limit >= p.now-stall && limit <= p.now+p.slack+rounding
	}
	return p.lost
}

// limits returns all times at which something happens.
func (p *program) limits() []int64 {
	limits := p.model.limits()
	for _, e := range p.model.want() {
		if e.ends != nil {
			limits = append(limits, *e.ends)
		}
		for _, score := range e.scores {
			limits = append(limits, *score)
		}
	}
	return limits
}

// pass lets time pass, for Redis and for the model: as much as given, and a little more if
// something would happen at the very moment of the next step.
func (p *program) pass(t *rapid.T, d time.Duration) {
	t.Helper()
	if p.lost {
		return
	}
	passed := d.Milliseconds()
	for limits := p.limits(); slices.ContainsFunc(limits, func(limit int64) bool {
		left := limit - passed - p.now
		return left > -2*stall && left < 2*stall
	}); {
		passed += stall
	}
	if passed == 0 {
		return
	}
	aging := p.B().Evalsha().Sha1(p.aging).Numkeys(0).Arg(strconv.FormatInt(passed, 10)).Build()
	require.True(t, rueidis.IsRedisNil(p.Client.Do(t.Context(), aging).Error()))
	for _, instant := range p.model.want().instants() {
		*instant -= passed
	}
	if m, ok := p.model.(interface{ age(passed int64) }); ok {
		m.age(passed)
	}
}

// requireHolder asserts the holder. Of several owners that hold the lock one is named; want names
// all of them.
func (p *program) requireHolder(t *rapid.T, want, got *lua.Holder) {
	t.Helper()
	if want == nil || got == nil {
		require.Equal(t, want, got)
		return
	}
	require.Contains(t, strings.Split(want.Owner, " "), got.Owner)
	require.Equal(t, want.Next, got.Next, "next")
	tolerance := float64(time.Duration(p.slack+2) * time.Millisecond)
	require.InDelta(t, want.TTL, got.TTL, tolerance, "TTL")
	require.InDelta(t, want.Sleep, got.Sleep, tolerance, "sleep")
}
