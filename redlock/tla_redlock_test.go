//go:build model

package redlock

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unique"

	"github.com/stretchr/testify/require"

	"holdfast/integration/model"
	"holdfast/internal/hooks"
	"holdfast/internal/owner"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/rlock"
	"holdfast/watchdog"
)

const (
	// tlaLease stands for a lease of three ticks, which can be trusted for exactly two.
	tlaLease = 200 * time.Second
	// tlaTick is a tick of the model.
	tlaTick = (tlaLease - tlaLease/100 - 2*time.Millisecond) / 2
	forever = 1000 * time.Hour
)

func init() { wait.Random = func(time.Duration) time.Duration { return 0 } }

// Traces of the model RedLock are played against acquisitions and their parts. The nodes reply what
// the trace says: package integration/model plays the same traces against the scripts.
func TestAcquisitionsFollowTheTLAModelRedLock(t *testing.T) {
	played := map[string]int{}
	for i, trace := range model.Traces(t, "RedLock", model.Some(200), 60, 1) {
		ok := t.Run(fmt.Sprint("trace ", i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newTLAReplay(t)
				defer r.end()
				for j := 1; j < len(trace); j++ {
					if !r.play(trace[j-1], trace[j]) {
						return
					}
					synctest.Wait()
					r.compare(trace[j])
					played[trace[j].Text("step", "do")]++
				}
			})
		})
		if !ok {
			for _, s := range trace {
				t.Log(s["step"])
			}
			return
		}
	}
	t.Log(played)
	for _, step := range []string{"Ask", "Fail", "Unlock", "Lose", "Leave", "Rejoin", "Renew", "Lapse",
		"Vote", "LateVote", "Renewal", "LateRenewal", "Release", "GiveUp", "Restart", "Tick"} {
		require.GreaterOrEqual(t, played[step], model.Some(10), "too few %s", step)
	}
}

// tlaReply is what a node replies to a command.
type tlaReply struct {
	vote lua.Vote
	held bool
	err  error
}

// tlaNode is a node of one owner. A command waits until the trace has its reply.
type tlaNode struct {
	hooks.Node
	t    *testing.T
	name string
	pool *wait.Pool

	mu       sync.Mutex // guards everything below
	timeout  time.Duration
	owners   int
	leases   []time.Duration // what WatchdogLease returns before it returns the lease
	refrains bool            // it does not ask this node to rejoin
	asked    []string        // the owners of all votes, in order
	votes    map[string]chan tlaReply
	releases map[string]chan tlaReply
	cleanUps map[string]bool // owners to be released in the background
	finished map[string]bool // owners for which the trace answers no commands any more
	holds    map[string]*tlaHold
}

// tlaHold is a part in the watchdog.
type tlaHold struct {
	part     hooks.Part
	mu       sync.Mutex
	deadline time.Time // guarded by mu
}

func (h *tlaHold) Deadline() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline
}

func (h *tlaHold) Extended(deadline time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Before(h.deadline) && deadline.After(h.deadline) {
		h.deadline = deadline
	}
}

func (h *tlaHold) MayRenew() bool        { return true }
func (h *tlaHold) Expiry() error         { return watchdog.ErrExpired }
func (h *tlaHold) SetRenew(bool)         {}
func (h *tlaHold) MayLast(time.Duration) {}
func (h *tlaHold) Drop()                 {}

func newTLANode(t *testing.T, name string) *tlaNode {
	return &tlaNode{t: t, name: name, votes: map[string]chan tlaReply{},
		releases: map[string]chan tlaReply{}, cleanUps: map[string]bool{},
		finished: map[string]bool{}, holds: map[string]*tlaHold{},
		pool: wait.NewPool(func(f func()) bool { go f(); return true })}
}

func (n *tlaNode) Name() string             { return "order" }
func (n *tlaNode) Server() string           { return n.name }
func (n *tlaNode) Warn(string, ...any)      {}
func (n *tlaNode) Failed(string, error)     {}
func (n *tlaNode) Pool() *wait.Pool         { return n.pool }
func (n *tlaNode) Closing() <-chan struct{} { return nil }
func (n *tlaNode) Permanent(error) bool     { return false }
func (n *tlaNode) Held(by lua.Holder) error { return &rlock.HeldError{Owner: by.Owner} }

// CommandTimeout lets an attempt last until the trace ends it, but an Unlock end soon.
func (n *tlaNode) CommandTimeout() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.timeout
}

func (n *tlaNode) NewOwner() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owners++
	return fmt.Sprint(n.name, ":", n.owners)
}

// WatchdogLease returns the lease. While another node rejoins, it returns one so long that this
// node was asked too recently to rejoin, too; and for the node itself first one that is over.
func (n *tlaNode) WatchdogLease() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refrains {
		return math.MaxInt64
	}
	if len(n.leases) > 0 {
		lease := n.leases[0]
		n.leases = n.leases[1:]
		return lease
	}
	return tlaLease
}

// command waits for a reply from the trace.
func (n *tlaNode) command(commands map[string]chan tlaReply, as string) tlaReply {
	n.mu.Lock()
	if n.finished[as] {
		n.mu.Unlock()
		return tlaReply{err: &lua.Error{Class: lua.ClassTemporary}}
	}
	reply := make(chan tlaReply, 1)
	commands[as] = reply
	n.mu.Unlock()
	return <-reply
}

func (n *tlaNode) Acquire(as string, lease time.Duration, d lua.Delay) (lua.Vote, error) {
	if lease != tlaLease || d != (lua.Delay{For: tlaLease}) {
		n.t.Errorf("asks for a lease of %v, and the delay %v", lease, d)
	}
	n.mu.Lock()
	if slices.Contains(n.asked, as) {
		n.t.Errorf("%s is asked twice for %s", n.name, as)
	}
	n.asked = append(n.asked, as)
	n.mu.Unlock()
	r := n.command(n.votes, as)
	return r.vote, r.err
}

func (n *tlaNode) Release(as string) (lua.Released, error) {
	r := n.command(n.releases, as)
	return lua.Released{Held: r.held}, r.err
}

func (n *tlaNode) CallSite() []uintptr { return nil }

func (n *tlaNode) CleanUp(as string, _ time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cleanUps[as] = true
}

func (n *tlaNode) Hold(as string, _ owner.Token, _ []uintptr, deadline time.Time, p hooks.Part,
) hooks.NodeAcquisition {
	h := &tlaHold{part: p, deadline: deadline}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.holds[as] = h
	return h
}

// reply gives the reply to a command that waits, and reports whether there is one.
func (n *tlaNode) reply(commands map[string]chan tlaReply, as string, r tlaReply) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	reply := commands[as]
	delete(commands, as)
	if reply != nil {
		reply <- r
	}
	return reply != nil
}

// finish ends the commands for an owner.
func (n *tlaNode) finish(as string) {
	n.mu.Lock()
	n.finished[as] = true
	n.mu.Unlock()
	for _, commands := range []map[string]chan tlaReply{n.votes, n.releases} {
		n.reply(commands, as, tlaReply{err: &lua.Error{Class: lua.ClassTemporary}})
	}
}

// latest returns the part that waits for its vote. Nothing else knows of an acquisition before a
// node has granted it.
func (n *tlaNode) latest() *part {
	jobs := reflect.ValueOf(n.pool).Elem().FieldByName("running")
	for i := range jobs.Len() {
		runner := jobs.Index(i).Elem().FieldByName("Runner").Elem()
		if runner.Type() != reflect.TypeFor[*part]() {
			continue
		}
		if p := (*part)(runner.UnsafePointer()); p.owner == n.asked[len(n.asked)-1] {
			return p
		}
	}
	return nil
}

// tlaOwner is one owner, who has a client for each node.
type tlaOwner struct {
	lock   *Lock
	nodes  map[string]*tlaNode
	cancel context.CancelFunc // of the attempt
	now    *acquisition       // nil before the first, and after the owner died
	parts  map[string]map[int64]*tlaPart
	hold   chan *rlock.Hold // of the attempt
}

// tlaPart is a part that the model knows by its name.
type tlaPart struct {
	*part
	node     *tlaNode
	lapsed   bool      // it is released when its acquisition ends
	released bool      // a release was executed for good
	renewed  time.Time // when its renewal was sent
}

// tlaReplay is one trace as it is played.
type tlaReplay struct {
	t      *testing.T
	owners map[string]*tlaOwner
	calls  sync.WaitGroup
}

func newTLAReplay(t *testing.T) *tlaReplay {
	r := &tlaReplay{t: t, owners: map[string]*tlaOwner{}}
	for _, who := range []string{"a", "b"} {
		o := &tlaOwner{nodes: map[string]*tlaNode{}, parts: map[string]map[int64]*tlaPart{}}
		l := &Lock{name: "order", quorum: 2, spare: 1,
			identity: unique.Make(fmt.Sprint("tla", modelLocks.Add(1)))}
		for _, name := range []string{"n1", "n2", "n3"} {
			o.nodes[name] = newTLANode(t, name)
			o.parts[name] = map[int64]*tlaPart{}
			l.nodes = append(l.nodes, o.nodes[name])
		}
		o.lock = l.WithOptions(Options{MaxLease: tlaLease, NodeTimeout: forever})
		r.owners[who] = o
	}
	return r
}

// ask begins an attempt. It reports whether the model asks all nodes, as the code does.
func (r *tlaReplay) ask(o *tlaOwner, who string, after model.State) bool {
	for name := range o.nodes {
		if i, p := r.current(after, who, name); p["state"] != "asked" || o.parts[name][i] != nil {
			return false
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	hold := make(chan *rlock.Hold, 1)
	o.setTimeout(forever)
	defer o.setTimeout(time.Second)
	o.cancel, o.hold = cancel, hold
	r.calls.Go(func() {
		h, _ := o.lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog) // the phase says how it ended
		hold <- h
	})
	synctest.Wait()
	for name, n := range o.nodes {
		i, _ := r.current(after, who, name)
		p := n.latest()
		require.NotNil(r.t, p)
		o.parts[name][i], o.now = &tlaPart{part: p, node: n}, p.acquisition
	}
	return true
}

func (o *tlaOwner) setTimeout(d time.Duration) {
	for _, n := range o.nodes {
		n.mu.Lock()
		n.timeout = d
		n.mu.Unlock()
	}
}

// current returns a part of the owner's latest acquisition in the model, and its name.
func (r *tlaReplay) current(s model.State, who, node string) (name int64, p model.Record) {
	name = s.Number("name", who, node)
	return name, s.At("parts", who, node).(model.Sequence)[name-1].(model.Record)
}

// rejoin has a part's renewal ask one node to rejoin.
func (r *tlaReplay) rejoin(o *tlaOwner, who, node string, after model.State) {
	for name, n := range o.nodes {
		n.mu.Lock()
		n.refrains = name != node
		if name == node {
			n.leases = []time.Duration{-time.Hour} // it was asked long ago
		}
		n.mu.Unlock()
	}
	for _, p := range o.now.parts {
		if p.state == granted && time.Now().Before(p.hold.Deadline()) {
			p.hold.(*tlaHold).part.Renewed()
			break
		}
	}
	synctest.Wait()
	for _, n := range o.nodes {
		n.mu.Lock()
		n.refrains, n.leases = false, nil
		n.mu.Unlock()
	}
	i, _ := r.current(after, who, node)
	p := o.nodes[node].latest()
	require.NotNil(r.t, p, "%s is not asked to rejoin", node)
	o.parts[node][i] = &tlaPart{part: p, node: o.nodes[node]}
}

// die ends all that an owner has under way, except holds.
func (o *tlaOwner) die() {
	for name, n := range o.nodes {
		for _, p := range o.parts[name] {
			n.finish(p.owner)
		}
		clear(o.parts[name])
	}
	if o.cancel != nil {
		o.cancel()
	}
	o.now = nil
}

var errTLAUnknown = &lua.Error{Class: lua.ClassUnknown}

// play does what a step of the model does. It returns false if the code cannot follow.
func (r *tlaReplay) play(before, after model.State) bool {
	step := after["step"].(model.Record)
	if step["do"] == "Tick" {
		time.Sleep(tlaTick)
		return true
	}
	who, _ := step["who"].(string)
	node, _ := step["on"].(string)
	o := r.owners[who]
	if o == nil {
		return true // a server restarts
	}
	var p *tlaPart
	var was model.Record
	if i, named := step["name"].(int64); named {
		p = o.parts[node][i]
		was = before.At("parts", who, node).(model.Sequence)[i-1].(model.Record)
	} else if node != "" {
		i, _ := r.current(before, who, node)
		p = o.parts[node][i]
	}
	switch step["do"] {
	case "Ask":
		return r.ask(o, who, after)
	case "Fail":
		o.cancel()
	case "Unlock":
		hold := <-o.hold
		r.calls.Go(func() { _ = hold.Unlock(context.Background()) }) // the phase says how it ended
	case "Lose":
		o.now.do(func() {})
	case "Leave":
		if o.now.state == held {
			o.now.Leave(o.now.levels[0].hold)
			require.Equal(r.t, left, o.now.state)
			require.Zero(r.t, o.now.count(asked, granted, releaseDue, releaseSent))
		}
		o.die()
	case "Rejoin":
		r.rejoin(o, who, node, after)
	case "Renew":
		p.renewed = time.Now()
	case "Lapse":
		p.lapsed = true
		if p.hold != nil { // else the acquisition was over before it was granted
			p.hold.(*tlaHold).part.Ended(watchdog.ErrExpired)
		}
	case "Vote":
		if step["late"] == true || was["state"] != "asked" && was["state"] != "unwanted" {
			break // nobody hears of it, or not yet
		}
		vote := lua.Vote{Delayed: time.Hour}
		if tlaHolds(after, who, node, step["name"]) {
			vote = lua.Vote{Granted: true}
		}
		require.True(r.t, p.node.reply(p.node.votes, p.owner, tlaReply{vote: vote}))
	case "LateVote":
		vote := lua.Vote{Granted: true}
		require.True(r.t, p.node.reply(p.node.votes, p.owner, tlaReply{vote: vote}))
	case "Renewal", "LateRenewal":
		now := after.At("parts", who, node).(model.Sequence)[step.Number("name")-1]
		switch hold := p.hold; {
		case step["late"] == true || was["state"] != "granted":
		case now.(model.Record)["state"] == "granted":
			hold.Extended(watchdog.Deadline(p.renewed, tlaLease))
		default:
			// A part that is gone is released in vain if its acquisition is over before that.
			p.released = !time.Now().Before(o.now.Deadline())
			hold.(*tlaHold).part.Ended(watchdog.ErrGone)
		}
	case "Release":
		reply := tlaReply{held: tlaHolds(before, who, node, step["name"])}
		if step["again"] == true {
			reply = tlaReply{err: errTLAUnknown}
		} else {
			p.released = true
		}
		p.node.reply(p.node.releases, p.owner, reply)
	case "GiveUp":
		if was["state"] != "granted" {
			require.True(r.t, p.node.reply(p.node.votes, p.owner, tlaReply{err: errTLAUnknown}))
		}
	default:
		require.Fail(r.t, "unknown step", "%v", step)
	}
	return true
}

// tlaHolds reports whether a node has granted the lock to a part.
func tlaHolds(s model.State, who, node string, name model.Value) bool {
	owner := s.At("node", node, "owner").(model.Sequence)
	return len(owner) == 2 && owner[0] == who && owner[1] == name
}

// tlaEnded returns the state of a part in the model once its acquisition has ended, if it is over.
func tlaEnded(p model.Record, current, over bool) model.Value {
	switch {
	case current && over && p["state"] == "asked":
		return "unwanted"
	case current && over && p["state"] == "granted":
		return "release sent"
	}
	return p["state"]
}

// compare compares the state of all acquisitions with the model's.
func (r *tlaReplay) compare(s model.State) {
	for who, o := range r.owners {
		if o.now == nil {
			continue
		}
		a, is := o.now, s.Text("phase", who)
		a.mu.Lock()
		defer a.mu.Unlock()
		trusted, open := 0, 0
		for name := range o.nodes {
			switch _, p := r.current(s, who, name); {
			case p["state"] == "granted" && p.Number("left") > 0:
				trusted++
			case p["state"] == "asked":
				open++
			}
		}
		// The code ends an acquisition as soon as there is a reason.
		over := is == "asking" && a.state == failed && trusted+open < 2 ||
			is == "held" && a.state == lost && trusted < 2
		if !over {
			want := map[string][]phase{"asking": {asking}, "held": {held}, "failed": {failed},
				"released": {releasing, released}, "lost": {lost}}[is]
			require.Contains(r.t, want, a.state)
		}
		if a.state == held {
			require.Equal(r.t, trusted >= 2, time.Now().Before(a.trustedUntil()), "trusts %s", who)
		}
		for name, parts := range o.parts {
			current, _ := r.current(s, who, name)
			for i, p := range parts {
				m := s.At("parts", who, name).(model.Sequence)[i-1].(model.Record)
				r.comparePart(fmt.Sprint(who, " on ", name, " as ", i), p, m,
					tlaEnded(m, i == current, over))
			}
		}
	}
}

// comparePart compares a part with the model's, which should be in the state want.
func (r *tlaReplay) comparePart(what string, p *tlaPart, m model.Record, want model.Value) {
	is := p.state
	cleanUp := p.node.cleanUps[p.owner] && !p.released
	switch want {
	case "missing":
		ended := []state{missing, freed, gone}
		if p.released {
			ended = append(ended, releaseDue, releaseSent) // to be asked once more, in vain
		}
		require.Contains(r.t, ended, is, what)
		require.False(r.t, cleanUp, "%s is cleaned up", what)
	case "release sent":
		require.True(r.t, is == releaseDue || is == releaseSent || is == missing && (cleanUp || p.lapsed),
			"%s is %s instead of under release", what, is)
	default:
		require.Equal(r.t, want, model.Value(string(is)), what)
	}
	if want == "granted" {
		left := max(0, time.Until(p.hold.Deadline()))
		require.Equal(r.t, time.Duration(m.Number("left")*int64(tlaTick)), left, what)
	}
}

// end ends all that is under way, and waits for it.
func (r *tlaReplay) end() {
	for _, o := range r.owners {
		a := o.now
		o.die()
		synctest.Wait()
		if a != nil && a.state == held {
			a.Leave(a.levels[0].hold)
		}
	}
	r.calls.Wait()
}
