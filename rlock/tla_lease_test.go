//go:build model

package rlock

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/integration/model"
	"holdfast/internal/fakeredis"
	"holdfast/internal/fragments"
	"holdfast/internal/inprocess"
	"holdfast/internal/wait"
	"holdfast/watchdog"
)

func init() { wait.Random = func(time.Duration) time.Duration { return 0 } }

// leaseTick is a tick of LeaseSteps. Its WatchdogLease is then 30 s, as it is by default.
const leaseTick = 50 * time.Millisecond

// leaseKey is the lock of the model.
const leaseKey = "model:lease"

// Traces of the model Lease are played against two clients, and a server with the real scripts,
// whose clock the test moves. Commands are executed, and answered, when the model says so. After
// each step the acquisitions, their deadlines and the lock in Redis are what the model says.
func TestAcquisitionsFollowTheTLAModelLease(t *testing.T) {
	const traces = 150
	steps := map[string]int{}
	for i, trace := range model.Traces(t, "Lease", traces, 80, 20) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLeaseReplay(t)
				defer r.end()
				for n := 1; n < len(trace); n++ {
					step := trace[n]["step"].(model.Record)
					r.step(trace[n-1], trace[n])
					steps[step.Text("do")]++
					if step.Text("do") == "RenewalReply" &&
						step.Number("n") < renewals(trace[n-1], step.Text("who")) {
						steps["late RenewalReply"]++
					}
				}
			})
		})
	}
	t.Log(steps)
	for _, do := range []string{
		"Pass", "Acquire", "Execute", "Reply", "GiveUp", "Fail", "Extend", "Release", "Leave",
		"Stop", "Continue", "Wake", "Expire", "Tick", "Retry", "Overdue", "ExecuteRenewal",
		"RenewalReply", "RenewalFails", "SendAgain", "ExecuteStray", "LoseStray", "CleanUp",
		"ExecuteCleanup", "CleanupReply", "TakeAway", "AnotherTakes", "AnotherLeaves",
		"late RenewalReply",
	} {
		require.Greater(t, steps[do], 2, "too few %s", do)
	}
}

// leaseReplay is one trace as it is played.
type leaseReplay struct {
	t        *testing.T
	server   *inprocess.Server
	breaker  *fakeredis.Server // breaks connections, or is busy
	breaking rueidis.Client    // a client of breaker, for errors
	start    time.Time
	now      int64 // in ticks
	owners   map[string]*leaseOwner
	path     []string // the steps so far
}

// leaseOwner is an owner of the model: a client in a process of its own.
type leaseOwner struct {
	client *Client
	gate   *leaseGate
	lock   *Lock

	hold        *Hold         // of the last acquisition
	acquisition *acquisition  // of hold
	outcome     chan error    // of the owner's call
	reason      error         // why the acquisition was lost
	stopped     chan struct{} // closed when the watchdog continues; nil unless it is stopped

	call, stray *leaseCommand
	renewals    []*leaseCommand // under way, as in the model
	cleanups    []*leaseCommand
}

// leaseGate is a rueidis client that keeps commands about the lock until the test executes them.
type leaseGate struct {
	rueidis.Client
	names map[string]string // of scripts, by their SHA-1

	mu   sync.Mutex
	sent []*leaseCommand // not taken by the test yet; guarded by mu
	open bool            // commands are not kept any more; guarded by mu
}

// leaseCommand is a command that a gate keeps.
type leaseCommand struct {
	ctx     context.Context // the same each time that it is sent
	script  string
	command rueidis.Completed
	result  rueidis.RedisResult
	done    bool          // whether result is there
	replied chan struct{} // closed when result may be returned
}

// Do implements [rueidis.Client].
func (g *leaseGate) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	args := command.Commands()
	g.mu.Lock()
	if g.open || len(args) < 4 || args[0] != "EVALSHA" || args[3] != leaseKey {
		g.mu.Unlock()
		return g.Client.Do(ctx, command)
	}
	script := strings.Replace(g.names[args[1]], "release_only", "release", 1)
	c := &leaseCommand{ctx: ctx, script: script, command: command, replied: make(chan struct{})}
	g.sent = append(g.sent, c)
	g.mu.Unlock()
	<-c.replied
	return c.result
}

// take takes the first command with a script from those that were sent; nil if there is none.
func (g *leaseGate) take(script string) *leaseCommand {
	return g.first(func(c *leaseCommand) bool { return c.script == script })
}

// first takes the first of the commands that were sent for which is returns true.
func (g *leaseGate) first(is func(*leaseCommand) bool) *leaseCommand {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.sent, is)
	if i < 0 {
		return nil
	}
	c := g.sent[i]
	g.sent = slices.Delete(g.sent, i, i+1)
	return c
}

// unexpected returns how many commands were sent that the test did not take, without releases.
func (g *leaseGate) unexpected() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.sent {
		if c.script != "release.lua" {
			n++
		}
	}
	return n
}

// newLeaseReplay starts a server and the clients of two owners.
func newLeaseReplay(t *testing.T) *leaseReplay {
	s, err := inprocess.New()
	require.NoError(t, err)
	r := &leaseReplay{t: t, server: s, breaker: fakeredis.New(), owners: map[string]*leaseOwner{}}
	r.breaker.Handle("BREAK", func([]string) any { r.breaker.Disconnect(); return nil })
	r.breaker.Handle("REJECT", func([]string) any { return errors.New("BUSY with another script") })
	r.breaking, err = rueidis.NewClient(r.breaker.ClientOption())
	require.NoError(t, err)
	names := map[string]string{}
	scripts := fragments.Read(os.DirFS("../lua"))
	for file, source := range scripts {
		sum := sha1.Sum([]byte(source))
		names[hex.EncodeToString(sum[:])] = file
	}
	for _, name := range []string{"a", "b"} {
		redis, err := rueidis.NewClient(s.ClientOption())
		require.NoError(t, err)
		for _, file := range []string{"acquire.lua", "renew.lua", "release.lua", "release_only.lua"} {
			load := redis.B().ScriptLoad().Script(scripts[file]).Build()
			require.NoError(t, redis.Do(t.Context(), load).Error())
		}
		o := &leaseOwner{gate: &leaseGate{Client: redis, names: names}}
		o.client, err = New(o.gate, Options{WatchdogLease: 600 * leaseTick,
			CommandTimeout: 120 * leaseTick, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		Detach(o.client) // so that callers always leave in time
		o.lock = o.client.NewLock(leaseKey)
		r.owners[name] = o
	}
	synctest.Wait()
	r.start = time.Now()
	return r
}

// end executes and answers all commands, and closes everything.
func (r *leaseReplay) end() {
	for _, o := range r.owners {
		if o.stopped != nil {
			close(o.stopped)
		}
		o.gate.mu.Lock()
		o.gate.open = true
		kept := o.gate.sent
		o.gate.mu.Unlock()
		for _, c := range slices.Concat(kept, o.renewals, o.cleanups, []*leaseCommand{o.call, o.stray}) {
			if c != nil && !c.done {
				r.execute(o, c)
			}
			if c != nil {
				r.reply(c)
			}
		}
		time.Sleep(time.Minute)
		require.NoError(r.t, o.client.Close(context.Background()))
		o.gate.Close()
	}
	r.breaking.Close()
	r.breaker.Close()
	r.server.Close()
}

// execute has the server execute a command.
func (r *leaseReplay) execute(o *leaseOwner, c *leaseCommand) {
	c.result, c.done = o.gate.Client.Do(context.Background(), c.command), true
}

// reply lets the client have the reply to a command.
func (r *leaseReplay) reply(c *leaseCommand) {
	close(c.replied)
	synctest.Wait()
}

// fail lets the client have the error of a broken connection instead of a reply.
func (r *leaseReplay) fail(c *leaseCommand) { r.failWith(c, "BREAK") }

// reject lets the client have an error of the server.
func (r *leaseReplay) reject(c *leaseCommand) { r.failWith(c, "REJECT") }

func (r *leaseReplay) failWith(c *leaseCommand, command string) {
	c.result = r.breaking.Do(context.Background(), r.breaking.B().Arbitrary(command).Build())
	require.Error(r.t, c.result.Error())
	r.reply(c)
}

// send makes a call of an owner, which must send a command with that script.
func (r *leaseReplay) send(o *leaseOwner, script string, call func() error) {
	o.outcome = make(chan error, 1)
	go func() { o.outcome <- call() }()
	synctest.Wait()
	o.call = r.sent(o, script)
}

// sent takes a command that must have been sent by now.
func (r *leaseReplay) sent(o *leaseOwner, script string) *leaseCommand {
	c := o.gate.take(script)
	require.NotNil(r.t, c, "%s was not sent, after %v", script, r.path)
	return c
}

// returned returns the error of the owner's call, which must have returned.
func (r *leaseReplay) returned(o *leaseOwner) error {
	select {
	case err := <-o.outcome:
		return err
	default:
		require.FailNow(r.t, "the caller has not returned", "%v", r.path)
		return nil
	}
}

// field returns a field of what a state has of an owner's command; "" if that has none.
func field(s model.State, command, owner, name string) model.Value {
	if value := s.At(command, owner, name); value != nil {
		return value
	}
	return ""
}

// renewals returns how many renewals of an owner are under way.
func renewals(s model.State, owner string) int64 {
	return int64(len(s.At("renewals", owner).(model.Sequence)))
}

// step makes the code take the step that leads from one state to the next.
func (r *leaseReplay) step(before, after model.State) {
	step := after["step"].(model.Record)
	do, who := step.Text("do"), step.Text("who")
	r.path = append(r.path, fmt.Sprint(do, step))
	o, redis := r.owners[who], r.server.Redis()
	lost := func() bool { return after.At("state", who) == "lost" }
	n := -1 // the index of the renewal
	if number, of := step["n"].(int64); of {
		n = int(number) - 1
	}
	switch do {
	case "Pass":
		r.now += step.Number("ticks")
		time.Sleep(time.Until(r.start.Add(time.Duration(r.now) * leaseTick)))
		r.server.Advance(time.Duration(step.Number("gain")) * leaseTick)
	case "AnotherTakes":
		r.server.CatchUp()
		redis.HSet(leaseKey, "another:1", "1")
		redis.SetTTL(leaseKey, 1000*time.Hour)
	case "AnotherLeaves", "TakeAway":
		r.server.CatchUp()
		require.True(r.t, redis.Del(leaseKey))

	case "Acquire":
		lease := Watchdog
		if ticks := step.Number("lease"); ticks > 0 {
			lease = time.Duration(ticks) * leaseTick
		}
		o.hold, o.acquisition, o.reason = nil, nil, nil
		r.send(o, "acquire.lua", func() (err error) {
			o.hold, err = o.lock.TryLock(context.Background(), NoWait, lease)
			return err
		})
	case "Extend":
		lease := time.Duration(step.Number("lease")) * leaseTick
		r.send(o, "renew.lua", func() error { return o.hold.Extend(context.Background(), lease) })
	case "Release":
		r.send(o, "release.lua", func() error { return o.hold.Unlock(context.Background()) })
	case "Leave":
		o.hold.Leave()
	case "Execute":
		r.execute(o, o.call)
	case "Reply":
		r.reply(o.call)
		o.call = nil
		if field(before, "call", who, "waits") == true {
			r.answered(before, after, who, r.returned(o))
		}
	case "GiveUp":
		require.ErrorIs(r.t, r.returned(o), ErrOutcomeUnknown)
	case "Fail":
		r.fail(o.call)
		o.call = nil

	case "Stop":
		stopped := make(chan struct{})
		o.stopped = stopped
		o.client.watchdog.Add(&watchdog.Lease{
			OnLost: func(*watchdog.Lease, error) { <-stopped }}, time.Now(), false)
	case "Continue":
	case "Wake", "Expire":
		if o.stopped != nil {
			close(o.stopped)
			o.stopped = nil
		}
		if do == "Expire" {
			o.reason = watchdog.ErrExpired
		}

	case "Tick":
		if renewals(before, who) < renewals(after, who) {
			o.renewals = append(o.renewals, r.sent(o, "renew.lua"))
		}
	case "Retry", "Overdue":
		o.renewals = append(o.renewals, r.sent(o, "renew.lua"))
	case "ExecuteRenewal":
		r.execute(o, o.renewals[n])
	case "RenewalReply":
		r.reply(o.renewals[n])
		o.renewals = slices.Delete(o.renewals, n, n+1)
		if lost() && o.reason == nil {
			o.reason = watchdog.ErrGone
		}
	case "RenewalFails":
		if step.Truth("may") {
			o.stray = o.renewals[n]
		} else {
			r.reject(o.renewals[n])
		}
		o.renewals = slices.Delete(o.renewals, n, n+1)
	case "SendAgain":
		lost := o.renewals[n]
		r.fail(lost)
		o.renewals[n] = o.gate.first(func(c *leaseCommand) bool { return c.ctx == lost.ctx })
		require.NotNil(r.t, o.renewals[n], "not sent again, after %v", r.path)
	case "ExecuteStray":
		r.execute(o, o.stray)
		r.reply(o.stray)
		o.stray = nil
	case "LoseStray":
		r.fail(o.stray)
		o.stray = nil

	case "CleanUp":
		o.cleanups = append(o.cleanups, r.sent(o, "release.lua"))
		for c := o.gate.take("release.lua"); c != nil; c = o.gate.take("release.lua") {
			o.cleanups = append(o.cleanups, c) // the model has one cleanup for all
		}
	case "ExecuteCleanup":
		for _, c := range o.cleanups {
			r.execute(o, c)
		}
	case "CleanupReply":
		for _, c := range o.cleanups {
			r.reply(c)
		}
		o.cleanups = nil
	default:
		require.FailNow(r.t, "unknown step", do)
	}
	synctest.Wait()
	r.compare(after)
}

// answered checks what a caller was told when it got a reply.
func (r *leaseReplay) answered(before, after model.State, who string, err error) {
	o, yes := r.owners[who], field(before, "call", who, "at") == "yes"
	switch do := field(before, "call", who, "do"); {
	case do == "acquire" && after.At("state", who) == "active":
		require.NoError(r.t, err, "%v", r.path)
		o.acquisition = o.hold.level.acquisition.(*acquisition)
	case do == "acquire":
		require.Error(r.t, err, "%v", r.path)
		require.Nil(r.t, o.hold, "%v", r.path)
	case after.At("state", who) == "lost":
		require.ErrorIs(r.t, err, ErrLost, "%v", r.path)
		if o.reason == nil {
			o.reason = watchdog.ErrGone
		}
		require.ErrorIs(r.t, err, o.reason, "%v", r.path)
	default:
		require.NoError(r.t, err, "%v", r.path)
		require.True(r.t, yes, "%v", r.path)
	}
}

// leaseStates has the states of acquisitions in the model.
var leaseStates = map[state]string{active: "active", releasing: "releasing", released: "released",
	unconfirmed: "unconfirmed", lost: "lost", left: "left"}

// compare compares the code with a state of the model.
func (r *leaseReplay) compare(s model.State) {
	for name, o := range r.owners {
		if s.At("state", name) != "none" && o.acquisition != nil {
			r.compareOwner(s, name, o)
		}
	}
	redis, holder := r.server.Redis(), s.Text("holder")
	r.server.CatchUp()
	if holder == "nobody" {
		require.False(r.t, redis.Exists(leaseKey), "%v", r.path)
		return
	}
	fields, err := redis.HKeys(leaseKey)
	require.NoError(r.t, err, "%v", r.path)
	require.Len(r.t, fields, 1, "%v", r.path)
	o := r.owners[holder]
	if o == nil {
		require.Equal(r.t, "another:1", fields[0], "%v", r.path)
		return
	}
	require.True(r.t, strings.HasPrefix(fields[0], o.client.id+":"), "%v", r.path)
	require.Equal(r.t, time.Duration(s.Number("granted", holder))*leaseTick,
		redis.TTL(leaseKey), "%v", r.path)
}

// compareOwner compares an owner's acquisition with a state of the model.
func (r *leaseReplay) compareOwner(s model.State, name string, o *leaseOwner) {
	is, left := s.Text("state", name), s.Number("left", name)
	runs := s.At("process", name) == "runs"
	require.Equal(r.t, is == "active" && left > 0, o.hold.Valid(), "Valid: %v", r.path)
	if is == "active" && left > 0 {
		left := time.Duration(left)*leaseTick - 2*time.Millisecond
		require.Equal(r.t, left, time.Until(o.hold.Deadline()), "Deadline: %v", r.path)
	}
	for _, timer := range []string{"tick", "budget"} {
		runs = runs && s.Number(timer, name) != 0 // else the code has handled it already
	}
	if at, due := s.At("batch", name, "at").(int64); due {
		runs = runs && at > s.Number("clock") // as well
	}
	if !runs || is == "active" && left <= 0 {
		return
	}
	require.Zero(r.t, o.gate.unexpected(), "sent: %v", r.path)
	o.acquisition.mu.Lock()
	now := o.acquisition.state
	o.acquisition.mu.Unlock()
	require.Equal(r.t, is, leaseStates[now], "%s: %v", name, r.path)
	select {
	case <-o.hold.Done():
		require.NotEqual(r.t, "active", is, "Done: %v", r.path)
	default:
		require.Equal(r.t, "active", is, "not Done: %v", r.path)
	}
	if is == "lost" && !errors.Is(o.hold.Err(), ErrReleased) {
		require.Error(r.t, o.reason, "%v", r.path)
		require.ErrorIs(r.t, o.hold.Err(), o.reason, "%v", r.path)
	}
}
