//go:build interop

package redisson_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/internal/wire"
)

// trace is what a step has published, and what is left afterwards.
type trace struct {
	published []string
	keys      map[string]string
	beside    map[string]string // this library's own keys
	// grants is how many of the published messages granted a waiter the lock. They are recorded as
	// what Redisson publishes then.
	grants int
}

func sameOperationsLeaveTheSameBytes(t *testing.T, s *site) {
	// A partial unlock by Redisson sets the lease to that of its watchdog, which must outlast the
	// scene.
	s = s.with(t, s.java, sceneLease)
	for _, scene := range scenes {
		for _, kind := range existing(scene.kinds...) {
			t.Run(scene.name+" "+kind, func(t *testing.T) {
				t.Parallel()
				s.comparePerformances(t, scene.steps, kind, goSide)
			})
		}
	}
	t.Run("without hand-overs", func(t *testing.T) {
		t.Parallel()
		for _, scene := range scenes {
			if slices.ContainsFunc(scene.steps, func(step step) bool { return step.grants }) {
				for _, kind := range existing(scene.kinds...) {
					s.comparePerformances(t, scene.steps, kind, announcingSide)
				}
			}
		}
	})
}

// comparePerformances has both sides play a scene with new locks, and requires that both did the
// same.
func (s *site) comparePerformances(t *testing.T, steps []step, kind string, us side) {
	t.Helper()
	l := target{kind, []string{newName()}}
	if kind == multi {
		l.names = append(l.names, newName())
	}
	ours, theirs := s.perform(t, steps, l, us), s.perform(t, steps, l, javaSide)
	for i, step := range steps {
		for of, traced := range map[string]*trace{us.name: &ours[i], javaSide.name: &theirs[i]} {
			if message, known := step.told[of]; known {
				last := len(traced.published) - 1
				require.True(t,
					last >= 0 && strings.HasSuffix(traced.published[last], strconv.Quote(message)),
					step.name)
				traced.published = traced.published[:last]
			}
			if end, known := step.keeps[of]; known {
				before := len(traced.keys)
				maps.DeleteFunc(traced.keys, func(key, _ string) bool {
					return strings.HasSuffix(key, end)
				})
				require.Len(t, traced.keys, before-1, step.name)
			}
		}
		require.Equal(t, theirs[i].published, ours[i].published,
			"published by step %q; first Redisson, then this library", step.name)
		require.Equal(t, theirs[i].keys, ours[i].keys,
			"keys after step %q; first Redisson, then this library", step.name)
		if kind == reentrant || kind == fenced {
			s.requireBeside(t, l, us, step, ours[i])
		}
	}
}

// requireBeside requires what a step of this library leaves and publishes in addition to
// Redisson's: a key with the registrations of waiters, and a message to the one that was granted
// the lock.
func (s *site) requireBeside(t testing.TB, l target, us side, step step, ours trace) {
	t.Helper()
	waiters := wire.Prefix("holdfast_lock_waiters", l.name())
	want, grants := map[string]string{}, 0
	switch {
	case !us.registersFor(l.kind):
	case step.waits:
		want[waiters] = fmt.Sprintf(`zset "<owner> %d %s"`, sceneLease.Milliseconds(),
			map[string]string{reentrant: "plain", fenced: "fenced"}[l.kind])
	case step.grants:
		grants = 1
	}
	require.Equal(t, want, ours.beside, "beside the lock after step %q", step.name)
	require.Equal(t, grants, ours.grants, "locks granted by step %q", step.name)
}

// perform has one side play the scene, and removes what is left of it.
func (s *site) perform(t *testing.T, steps []step, l target, by side) []trace {
	t.Helper()
	p := &play{t: t, site: s, lock: l, by: by, waiting: make(map[int]<-chan outcome)}
	for range 4 {
		p.actors = append(p.actors, by.newActor(t, s))
	}
	monitors := make(map[*redistest.Server]*redistest.Monitor)
	for _, node := range s.nodes {
		monitors[node] = node.Monitor(t)
	}
	doing := ""
	defer func() {
		if t.Failed() { // a waiter that was not woken, for example
			t.Logf("%s, %v, step %q", by.name, l, doing)
			for node, monitor := range monitors {
				t.Log(node.Addr(), "executed since the step before:", monitor.Commands(t))
			}
		}
	}()
	traces := make([]trace, len(steps))
	for i, step := range steps {
		doing = step.name
		step.do(p)
		traces[i] = s.observe(t, l, by, monitors)
	}
	for _, name := range l.names {
		for _, key := range s.keys(t, name) {
			s.node(t, name).Do(t, "DEL", key)
		}
	}
	return traces
}

// observe returns what was published for a lock since the last call, and describes its keys.
func (s *site) observe(
	t testing.TB, l target, by side, monitors map[*redistest.Server]*redistest.Monitor,
) trace {
	t.Helper()
	seen := trace{published: []string{}, keys: make(map[string]string),
		beside: make(map[string]string)}
	published := make(map[*redistest.Server][][]string)
	for node, monitor := range monitors {
		published[node] = monitor.CommandsOfScripts(t)
	}
	// one by one, because the nodes of a cluster have no common order
	for _, name := range l.names {
		o := owners{} // the parts of a MultiLock may have several owners
		for _, command := range published[s.node(t, name)] {
			if strings.HasSuffix(command[0], "publish") && isAbout(command[1], name) {
				if s.isGrant(t, command, name) {
					seen.grants++
					command = []string{command[0], wire.Channel(name), wire.Unlocked}
				}
				if s.cluster != nil && by.name == javaSide.name && beside.before(asksForShardedChannels) {
					command[0] = "spublish" // or a classic message, which this library sends only to Java
				}
				seen.published = append(seen.published,
					fmt.Sprintf("%s %s %s", command[0], o.hide(command[1]), quoteAll(command[2:])))
			}
		}
		keys := s.keysLeft(t, name)
		// the lock comes first, so that it numbers its owner before the queue does
		slices.Sort(keys)
		for _, key := range keys {
			description := s.describe(t, l, by, key)
			seen.keys[o.hide(key)] = o.hide(description)
		}
		for _, key := range s.keys(t, name) {
			if strings.HasPrefix(key, "holdfast_") {
				seen.beside[key] = s.describeOwn(t, key)
			}
		}
	}
	return seen
}

// isGrant reports whether a published message grants a waiter the lock: a client of this library on
// its own channel, and truthfully.
func (s *site) isGrant(t testing.TB, command []string, name string) bool {
	t.Helper()
	grant, ok := wire.ParseGrant(command[2])
	if !ok {
		return false
	}
	client, _, _ := strings.Cut(grant.Owner, ":")
	require.Equal(t, wire.PairedChannels(wire.Channel(name), client)[1], command[1])
	require.Equal(t, name, grant.Lock)
	require.Equal(t, map[string]string{grant.Owner: "1"}, s.hgetall(t, name))
	return true
}

// describeOwn returns the type of a key that Redisson does not know, and the waiters registered in
// it. The key expires.
func (s *site) describeOwn(t testing.TB, key string) string {
	t.Helper()
	node := s.node(t, key)
	kind := node.DoString(t, "TYPE", key)
	require.Positive(t, node.DoInt(t, "PTTL", key), key)
	if kind == "zset" {
		return fmt.Sprintf("zset %s",
			owner.ReplaceAllString(quoteAll(node.DoStrings(t, "ZRANGE", key, "0", "-1")),
				"<owner>"))
	}
	return kind
}

// describe returns the type and the value of a key, and whether it expires.
func (s *site) describe(t testing.TB, l target, by side, key string) string {
	t.Helper()
	node := s.node(t, key)
	kind := node.DoString(t, "TYPE", key)
	var value string
	switch kind {
	case "string":
		value = strconv.Quote(node.DoString(t, "GET", key))
	case "hash":
		hash := node.DoMap(t, "HGETALL", key)
		for _, field := range slices.Sorted(maps.Keys(hash)) {
			value += fmt.Sprintf("%q=%q ", field, hash[field])
		}
	case "list":
		value = quoteAll(node.DoStrings(t, "LRANGE", key, "0", "-1"))
	case "zset":
		value = quoteAll(node.DoStrings(t, "ZRANGE", key, "0", "-1"))
		s.requireScores(t, l, by, node.DoMap(t, "ZRANGE", key, "0", "-1", "WITHSCORES"))
	}
	left := node.DoInt(t, "PTTL", key)
	if left < 0 {
		return fmt.Sprintf("%s %s for ever", kind, value)
	}
	// Redisson adds the leases of a writer's levels; this library takes the longest.
	require.LessOrEqual(t, left, 3*sceneLease.Milliseconds(), key)
	require.Greater(t, left, (sceneLease - locktest.Timeout).Milliseconds(), key)
	return fmt.Sprintf("%s %s for the lease", kind, value)
}

// spare is how much later the deadline of a waiter of this library may be than in Redisson's
// arithmetic: it asks again every five seconds to keep it, and must not be dropped in between.
const spare = 10 * time.Second

// requireScores requires that each waiter for a fair lock has the deadline of Redisson's
// arithmetic: that of the previous one, or the end of the lease, and its own wait.
func (s *site) requireScores(t testing.TB, l target, by side, scores map[string]string) {
	t.Helper()
	deadline := float64(time.Now().Add(s.pttl(t, l.name())).UnixMilli())
	for _, owner := range s.queue(t, l.name()) {
		deadline += float64(sceneWindow.Milliseconds())
		score, err := strconv.ParseFloat(scores[owner], 64)
		require.NoError(t, err)
		late := time.Duration(score-deadline) * time.Millisecond
		require.Greater(t, late, -sceneDelay, owner)
		if by.name == javaSide.name {
			require.Less(t, late, sceneDelay, owner)
		} else {
			require.Less(t, late, spare+sceneDelay, owner)
		}
	}
}

// owner matches an owner.
var owner = regexp.MustCompile(
	`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}:[^:" {}]+`)

// owners numbers owners in the order of their appearance.
type owners map[string]string

// hide replaces each owner by its number.
func (o owners) hide(text string) string {
	return owner.ReplaceAllStringFunc(text, func(found string) string {
		if o[found] == "" {
			o[found] = fmt.Sprintf("<owner %d>", len(o)+1)
		}
		return o[found]
	})
}

// isAbout reports whether a key or channel belongs to a lock.
func isAbout(text, name string) bool {
	_, after, found := strings.Cut(text, name)
	// lock-10 also contains lock-1.
	return found && (after == "" || after[0] < '0' || after[0] > '9')
}

// quoteAll quotes and joins values.
func quoteAll(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = strconv.Quote(value)
	}
	return strings.Join(quoted, " ")
}
