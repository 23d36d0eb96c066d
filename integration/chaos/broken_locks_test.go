package chaos_test

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/integration"
	"holdfast/integration/chaos"
	"holdfast/integration/history"
)

// edit changes one passage of a source file.
type edit struct {
	file     string // from the top of the repository
	old, new string
}

// lastOfABurst has no other worker that makes up for a missed wake-up.
var lastOfABurst = chaos.Scenario{
	Lease: 10 * time.Second, Peace: time.Second,
	Burst: 1500 * time.Millisecond, Copies: 4, Latency: 40 * time.Millisecond,
	Processes: 6, Workers: 1, // another worker would make up for it
	Wait: 5 * time.Second,
	// MultiLocks keep locks while they wait for others, so nothing can be judged on a plain lock.
	Kinds: []history.Kind{history.Fenced},
	// A registered waiter is granted the lock, with or without a message, and passes it on.
	HandOver: chaos.None,
}

// lateMessages delivers grants of one second late, when others hold the locks. Workers wait longer
// than that, or none would be left to believe them. There are no other grants.
var lateMessages = chaos.Scenario{
	Lease: 8 * time.Second, Wait: 8 * time.Second, Peace: time.Second / 4,
	Faults: []chaos.Fault{chaos.AllMessagesLate.Within(0.5)},
	Kinds:  []history.Kind{history.Fenced}, HandOver: chaos.ToAll, Processes: 4, Workers: 3,
}

// hotLock returns a lock that its process mostly passes on without a command, while something
// fails. The other rules of such local turns are proven at less cost by the tests in
// internal/waitqueue/turn_test.go and internal/suite/turns.go, and by the model LocalTurns.tla.
func hotLock(faults ...chaos.Fault) chaos.Scenario {
	s := chaos.Named("hot lock")
	s.Faults, s.Quiet = faults, false
	return s
}

// brokenLock is a lock with a mistake that others have made, and what must be found.
type brokenLock struct {
	mistake string
	edits   []edit
	in      chaos.Scenario
	found   []string // invariants, one of which must be breached
}

// scenario returns what the lock is played in.
func (b brokenLock) scenario() chaos.Scenario {
	s := b.in
	if s.Name == "" {
		s.Topology, s.Workers = integration.Single, cmp.Or(s.Workers, 5)
		if s.Kinds == nil {
			s.Kinds = []history.Kind{history.Plain}
		}
	}
	s.Name = b.mistake
	return s
}

// isFound reports whether the mistake was found.
func (b brokenLock) isFound(t *testing.T, verdict history.Verdict) bool {
	t.Helper()
	found := map[string]int{}
	for _, breach := range verdict.Breaches {
		found[breach.Invariant]++
	}
	t.Logf("found: %v", found)
	return slices.ContainsFunc(b.found, func(invariant string) bool { return found[invariant] > 0 })
}

var broken = []brokenLock{
	{
		mistake: "release without owner check",
		edits: []edit{
			{"lua/release_only.lua", "if redis.call('HDEL', KEYS[1], ARGV[1]) == 0",
				"if redis.call('DEL', KEYS[1]) == 0"},
			{"lua/release.lua", "if redis.call('HDEL', lock, ARGV[1]) == 0",
				"if redis.call('DEL', lock) == 0"},
		},
		in: chaos.Scenario{Lease: time.Second / 2, Peace: time.Second / 4,
			Faults: []chaos.Fault{chaos.ProcessStopped}},
		found: []string{history.Exclusion, history.Linearizable},
	},
	{
		mistake: "no second look after subscribing",
		edits: []edit{
			{"pubsub/exchange.go", "	c.wakeAll(0) // earlier messages are lost\n", ""},
			{"pubsub/hub.go", "	if c.phase == confirmed {\n" +
				"		s.permit(0) // its last request was before it listened\n	}\n", ""},
		},
		in:    lastOfABurst,
		found: []string{history.WakeUps},
	},
	{
		mistake: "a release that nobody is told of",
		edits: []edit{
			{"lua/release_only.lua", announcement, "local heard = 0\n"},
			{"lua/release.lua", announcement, "local heard = 0\n"},
		},
		in:    lastOfABurst,
		found: []string{history.WakeUps},
	},
	{
		mistake: "a renewal that lengthens nothing",
		edits:   []edit{{"lua/renew.lua", "    redis.call('PEXPIRE', lock, lease)\n", ""}},
		in:      chaos.Named("calm"),
		found:   []string{history.Exclusion, history.Kept},
	},
	{
		mistake: "a watchdog that sleeps",
		edits: []edit{{"watchdog/schedule.go", "enqueue(t, limit time.Duration) {\n",
			"enqueue(t, limit time.Duration) {\n\tlimit = 0\n"}},
		in:    chaos.Named("calm"),
		found: []string{history.Kept},
	},
	{
		mistake: "a renewal that stops at the first refusal",
		edits: []edit{{"lua/batch.go", renewSignature, `var refusedBatch error

func Renew(ctx context.Context, c rueidis.CoreClient, lease time.Duration, renewals []Held,
) (all []bool, err error) {
	if refusedBatch != nil {
		return nil, refusedBatch
	}
	defer func() {
		if len(renewals) > 1 && rediserr.ClassOf(err) == rediserr.ClassPermanent {
			refusedBatch = err
		}
	}()
`}},
		in:    chaos.Named("forbidden key"),
		found: []string{history.Kept},
	},
	{
		mistake: "a renewal that drops late replies",
		edits: []edit{{"lua/batch.go", renewSignature, `
func Renew(ctx context.Context, c rueidis.CoreClient, lease time.Duration, renewals []Held,
) (all []bool, err error) {
	begun := time.Now()
	defer func() {
		if time.Since(begun) > lease/6 {
			all, err = nil, &rediserr.Error{Class: rediserr.ClassUnknown, Message: "no reply in time"}
		}
	}()
`}},
		in:    chaos.Named("late replies"),
		found: []string{history.Kept},
	},
	{
		mistake: "a count that is incremented instead of set",
		edits: []edit{
			{
				"lua/reenter.lua",
				"redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])",
				"redis.call('HINCRBY', KEYS[1], ARGV[1], 1)",
			},
			{
				"lua/release_only.lua",
				"if tonumber(ARGV[2]) > 0 then\n",
				"if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 and " +
					"redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then\n" +
					"  return 0\nend\nif false then\n",
			},
			{
				"lua/release.lua",
				"if redis.call('HDEL', lock, ARGV[1]) == 0",
				"if redis.call('HEXISTS', lock, ARGV[1]) == 1 and " +
					"redis.call('HINCRBY', lock, ARGV[1], -1) > 0 then\n" +
					"  return 0\nend\nif redis.call('HDEL', lock, ARGV[1]) == 0",
			},
		},
		in: chaos.Scenario{
			Lease: 4 * time.Second, Peace: time.Second / 10, Kinds: []history.Kind{history.Fenced},
			Faults: []chaos.Fault{chaos.CutReplies.Within(0.05)},
		},
		found: []string{history.Exclusion, history.Kept, history.WakeUps, history.Linearizable},
	},
	{
		mistake: "no deadline",
		edits: []edit{
			{"watchdog/lease.go", "return epoch.Add(", "return epoch.Add(time.Hour + "},
			{"watchdog/lease.go", "return l.stage == watched && t < l.until()", "return l.stage == watched"},
			{"watchdog/schedule.go", "\t\tnext = min(next, w.deadlines[0].until())\n", ""},
		},
		in: chaos.Scenario{
			Lease: time.Second / 2, Peace: time.Second / 4,
			Faults: []chaos.Fault{chaos.ProcessStopped},
		},
		found: []string{history.Exclusion, history.Linearizable},
	},
	{
		mistake: "a deadline that is counted from when the message came",
		edits: []edit{{
			"internal/waitqueue/handover.go",
			"w.giveGrant(Grant{Since: w.asked, Local: m.Local,",
			"w.giveGrant(Grant{Since: time.Now(), Local: m.Local,",
		}},
		in:    lateMessages,
		found: []string{history.Exclusion, history.Linearizable},
	},
	{
		mistake: "a waiter that leaves and keeps its turn",
		edits: []edit{{"internal/waitqueue/turn.go", "Turn { return w.given.Turn }",
			"Turn { return Turn{} }"}},
		in:    hotLock(),
		found: []string{history.Progress, history.WakeUps},
	},
	{
		mistake: "a turn that is not renewed",
		edits: []edit{{"rlock/turn.go", "	hold, err := at.begin(lease, g.Turn.Until, 0)\n",
			"	at.renew = false\n	hold, err := at.begin(lease, g.Turn.Until, 0)\n"}},
		in:    hotLock(),
		found: []string{history.Kept},
	},
	{
		mistake: "a turn whose deadline is counted from the turn",
		edits: []edit{{"rlock/turn.go", "at.begin(lease, g.Turn.Until, 0)",
			"at.begin(lease, time.Now().Add(lease), 0)"}},
		in:    hotLock(chaos.Partition),
		found: []string{history.Exclusion, history.Linearizable},
	},
}

// renewSignature begins what renews locks, whatever decides when and which.
const renewSignature = "func Renew(ctx context.Context, c rueidis.CoreClient, " +
	"lease time.Duration, renewals []Held,\n) ([]bool, error) {\n"

// announcement is how the release of a plain lock is announced.
const announcement = "local heard = redis.pcall(verb, channel, '0')\n"

// The broken locks themselves are played at night.
func TestLocksCanStillBeBroken(t *testing.T) {
	for _, b := range broken {
		require.NotEmpty(t, edited(t, b.edits), b.mistake)
	}
}

// top returns the directory of the repository.
const top = "../.."

// edited returns the sources that the edits change, by file. Each edit must match exactly once, so
// that it does not silently change nothing when the code has changed.
func edited(t *testing.T, edits []edit) map[string]string {
	t.Helper()
	sources := map[string]string{}
	for _, e := range edits {
		if _, known := sources[e.file]; !known {
			source, err := os.ReadFile(filepath.Join(top, e.file))
			require.NoError(t, err)
			sources[e.file] = string(source)
		}
		require.Equal(t, 1, strings.Count(sources[e.file], e.old),
			"%s does not contain just once:\n%s", e.file, e.old)
		sources[e.file] = strings.Replace(sources[e.file], e.old, e.new, 1)
	}
	return sources
}

// buildBroken builds this test binary, which is also the client process, with some files replaced.
// It does so without the race detector, which takes half of the time and finds nothing here.
func buildBroken(t *testing.T, sources map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	top, err := filepath.Abs(top)
	require.NoError(t, err)
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, source := range sources {
		replacement := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		require.NoError(t, os.WriteFile(replacement, []byte(source), 0o600))
		overlay.Replace[filepath.Join(top, file)] = replacement
	}
	list, err := json.Marshal(overlay)
	require.NoError(t, err)
	overlayFile := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, list, 0o600))
	program := filepath.Join(dir, "client")
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-w", "-overlay", overlayFile,
		"-o", program, "./integration/chaos")
	build.Dir = top
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return program
}
