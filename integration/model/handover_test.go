//go:build model

package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// handOverTraces are replayed, of handOverDepth states at most.
const handOverTraces, handOverDepth = 1000, 50

// The queues of waiters and the scripts do what the model does: in each of its steps they get into
// the same states, publish the same messages and give the same replies.
func TestScriptsAndQueuesFollowHandOver(t *testing.T) {
	t.Parallel()
	traces := traces(t, "HandOverSteps", some(handOverTraces), handOverDepth, 20)
	server := redistest.Start(t)
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := map[string]int{} // how often a step was replayed
	for range 4 {
		stage := newHandOverStage(t, server)
		wg.Go(func() {
			for i := range next {
				steps, err := stage.play(i, traces[i])
				mu.Lock()
				for _, step := range steps {
					done[step]++
				}
				mu.Unlock()
				if err != nil {
					t.Errorf("trace %d: %v, after %s", i, err, strings.Join(steps, " "))
				}
			}
		})
	}
	for i := range traces {
		next <- i
	}
	close(next)
	wg.Wait()
	t.Logf("steps replayed: %v", done)
	for _, step := range handOverSteps {
		require.NotZero(t, done[step], "no trace has the step %s", step)
	}
}

// handOverSteps has all steps of the model.
var handOverSteps = []string{
	"Join", "Ask", "ExecuteAsk", "Acquire", "AcquireTooLate", "Refuse", "LoseReply", "Abandon",
	"LateAsk", "Accept", "Leave", "Release", "ExecuteRelease", "CleanUp", "Settle",
	"LoseSettlement", "AbandonRelease", "LateRelease", "Lose", "GiveUpCleanup", "Deliver",
	"LoseMessage", "Hear", "Disconnect", "Subscribe", "Die", "Expire", "ExpireGhost",
	"ExpireWaiters", "JavaWaits", "JavaAsks", "JavaReleases",
}

// handOverLease is longer than any test takes. To end a lease, the test deletes the lock.
const handOverLease = time.Hour

// handOverProcesses are the processes of the model; each is a client with its own queues.
var handOverProcesses = []string{"p1", "p2"}

const java = "java:1" // the stranger's name in Redis

// handOverStage has the connections on which traces are played, one after the other.
type handOverStage struct {
	client    rueidis.Client
	listeners map[string]*subscriber // by process, and Java's
}

// newHandOverStage connects to a server.
func newHandOverStage(t *testing.T, s *redistest.Server) *handOverStage {
	st := &handOverStage{client: s.Client(t), listeners: map[string]*subscriber{"java": listen(t, s)}}
	for _, p := range handOverProcesses {
		st.listeners[p] = listen(t, s)
	}
	return st
}

type (
	handOverQueues = waitqueue.Queues[string, struct{}]
	handOverWaiter = waitqueue.Waiter[string, struct{}]
	handOverOffer  = waitqueue.Offer[string, struct{}]
)

// handOverReplay is one trace as it is played.
type handOverReplay struct {
	*handOverStage
	name    string // of the lock
	lock    *lua.Exclusive
	queues  map[string]*handOverQueues // by process
	waiters map[string]*handOverWaiter // by owner of the model
	clock   int64                      // the number of steps so far, as seconds
	first   map[string]map[int64]int64 // by owner: which lease is the first after a time
	asks    map[string]*asked          // by owner
	offers  map[string]*released       // by owner
	late    map[string]*released       // by owner: releases that may be executed late
	tickets map[string]int64           // by owner and ticket of the model
	last    int64                      // the last ticket
	grants  []waitqueue.Message        // that have arrived, but were not delivered yet
	zeros   map[string]int             // by process: announcements that it has not heard yet
}

// asked is a request that is under way.
type asked struct {
	sent      time.Time
	registers bool
	holder    *lua.Holder
	ticket    int64
}

// released is a release that is under way.
type released struct {
	offer   handOverOffer
	sent    time.Time
	outcome waitqueue.Outcome
	ticket  int64
}

// play plays a trace, and returns its steps up to the one that led to an error, if there is one.
func (st *handOverStage) play(i int, trace []State) (steps []string, err error) {
	defer func() {
		if why := recover(); why != nil { // by a transition that does not exist, among others
			err = fmt.Errorf("%v", why)
		}
	}()
	name := fmt.Sprintf("order:%d", i)
	r := &handOverReplay{
		handOverStage: st, name: name, lock: lua.NewExclusive(name, false),
		queues: map[string]*handOverQueues{}, waiters: map[string]*handOverWaiter{},
		first: map[string]map[int64]int64{}, asks: map[string]*asked{},
		offers: map[string]*released{}, late: map[string]*released{},
		tickets: map[string]int64{}, zeros: map[string]int{},
	}
	for _, p := range handOverProcesses {
		r.queues[p] = waitqueue.New[string, struct{}]()
		r.subscribe(p, true)
	}
	defer func() {
		for _, l := range st.listeners {
			must(l.subscribe(false, wire.Channel(name)))
			must(l.subscribe(false, wire.PairedChannels(wire.Channel(name), "p1")...))
			must(l.subscribe(false, wire.PairedChannels(wire.Channel(name), "p2")...))
			l.messages = nil
		}
		r.do("DEL", name, r.waitersKey())
	}()
	for i, after := range trace[1:] {
		steps = append(steps, after.Text("step", "do"))
		if err := r.step(trace[i], after); err != nil {
			return steps, err
		}
	}
	return steps, nil
}

// waitersKey returns the key with the registrations.
func (r *handOverReplay) waitersKey() string { return wire.Prefix("holdfast_lock_waiters", r.name) }

// do executes a command and returns its reply.
func (r *handOverReplay) do(words ...string) rueidis.RedisResult {
	b := r.client.B().Arbitrary(words[0]).Args(words[1:]...)
	result := r.client.Do(context.Background(), b.Build())
	must(result.NonRedisError())
	return result
}

// must panics with an error: play recovers.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// subscribe begins or ends the subscriptions of a process.
func (r *handOverReplay) subscribe(who string, begin bool) {
	channels := []string{wire.Channel(r.name)}
	if who != "java" {
		channels = append(channels, wire.PairedChannels(channels[0], who)...)
	}
	must(r.listeners[who].subscribe(begin, channels...))
	if !begin {
		r.receive(who)
		r.zeros[who] = 0
		r.grants = slices.DeleteFunc(r.grants, func(m waitqueue.Message) bool {
			return strings.HasPrefix(m.Owner, who+":")
		})
	}
}

// hear reads what has arrived at all listeners.
func (r *handOverReplay) hear() {
	for _, l := range r.listeners {
		must(l.ping())
	}
	for who, l := range r.listeners {
		must(l.pong())
		r.receive(who)
	}
}

// receive takes the messages that a process has received.
func (r *handOverReplay) receive(who string) {
	l := r.listeners[who]
	for _, m := range l.messages {
		g, granted := wire.ParseGrant(m.text)
		switch {
		case granted && m.channel == wire.PairedChannels(wire.Channel(r.name), who)[1]:
			r.grants = append(r.grants, waitqueue.Message{Owner: g.Owner,
				Ticket: waitqueue.Ticket(g.Ticket), Fence: g.Fence})
		case m == published{wire.Channel(r.name), "0"}:
			r.zeros[who]++
		default:
			panic(fmt.Sprintf("an unexpected message: %q", m))
		}
	}
	l.messages = nil
}

// owner returns the name in Redis of an owner of the model.
func (r *handOverReplay) owner(who string) string {
	if who == "java" {
		return java
	}
	return home(who) + ":" + who
}

// home returns the process of an owner.
func home(who string) string {
	if who < "w4" {
		return "p1"
	}
	return "p2"
}

// registration returns what stands for an owner among the waiters in Redis.
func (r *handOverReplay) registration(owner string) string {
	return r.lock.Registration(owner, handOverLease)
}

// send notes that a command is sent now that may give the lock to an owner, and returns the time.
func (r *handOverReplay) send(before State, who string) time.Time {
	if r.first[who] == nil {
		r.first[who] = map[int64]int64{}
	}
	r.first[who][r.clock] = before.Number("server", "leases", who) + 1
	return time.Unix(r.clock, 0)
}

// step does what a step of the model does, and compares everything.
func (r *handOverReplay) step(before, after State) error {
	r.clock++
	do := after.Text("step", "do")
	who, _ := after.At("step", "who").(string)
	if err := r.act(do, who, before, after); err != nil {
		return fmt.Errorf("%s %s: %w", do, who, err)
	}
	if err := r.compareWaiters(after); err != nil {
		return fmt.Errorf("%s %s: %w", do, who, err)
	}
	switch do {
	case "ExecuteAsk", "LateAsk", "ExecuteRelease", "LateRelease", "CleanUp", "JavaAsks",
		"JavaReleases", "Expire", "ExpireGhost", "ExpireWaiters":
		if err := r.compareServer(before, after); err != nil {
			return fmt.Errorf("%s %s: %w", do, who, err)
		}
	}
	return nil
}

// act does what a step does, and compares what it returns.
func (r *handOverReplay) act(do, who string, before, after State) error {
	ctx, w := context.Background(), r.waiters[who]
	flag, _ := after.At("step", "flag").(bool)
	switch do {
	case "Join":
		begin := func() (struct{}, bool) { return struct{}{}, true }
		r.waiters[who] = r.queues[home(who)].Join(r.name, r.owner(who), handOverLease,
			begin)
	case "Ask":
		reason := reasons[before.Number("waiter", who, "reason")]
		if reason > waitqueue.Paused {
			if woken, _ := w.Park(r.budget(), wait.Unlimited, nil); woken != reason {
				return differ("reason", reason, woken)
			}
		}
		registers := w.Ask(true, before.Truth("world", "listens", home(who)))
		r.asks[who] = &asked{sent: r.send(before, who), registers: registers}
		return differ("registers", after.Truth("wire", "asks", who, "registers"), registers)
	case "ExecuteAsk":
		a := r.asks[who]
		r.ask(who, a)
		if a.ticket != 0 {
			return r.issued(who, after.Number("wire", "asks", who, "ticket"), a.ticket)
		}
		return differ("got", after.Truth("wire", "asks", who, "got"), a.holder == nil)
	case "LateAsk":
		registers := before.Text("wire", "lateAsks", who) == "registers"
		a := &asked{registers: registers}
		r.ask(who, a)
		if a.ticket != 0 {
			return r.issued(who, after.Number("server", "issued", who), a.ticket)
		}
	case "Refuse":
		a := r.asks[who]
		w.Reply(waitqueue.Ticket(a.ticket), a.sent)
	case "AcquireTooLate", "LoseReply", "Abandon":
		w.Reply(0, r.asks[who].sent)
	case "Acquire":
		w.Reply(0, r.asks[who].sent)
		return r.leave(who, true, after)
	case "Accept":
		reason, grant := w.Park(r.budget(), wait.Unlimited, nil)
		if err := differ("reason", waitqueue.HasGrant, reason); err != nil {
			return err
		}
		since := r.first[who][grant.Since.Unix()]
		if err := differ("since", after.Number("owner", who, "since"), since); err != nil {
			return err
		}
		return r.leave(who, true, after)
	case "Leave":
		return r.leave(who, false, after)
	case "Release":
		return r.release(who, flag, before, after)
	case "ExecuteRelease":
		o := r.offers[who]
		r.execute(who, o, flag)
		if err := differ("outcome", after.Text("wire", "releases", who, "outcome"),
			outcomes[o.outcome]); err != nil {
			return err
		}
		if o.ticket != 0 {
			to := after.Text("wire", "releases", who, "to")
			return r.issued(to, after.Number("wire", "releases", who, "ticket"), o.ticket)
		}
	case "LateRelease":
		o := r.late[who]
		r.execute(who, o, false)
		if o.ticket != 0 {
			to := before.Text("wire", "lateReleases", who, "to")
			return r.issued(to, after.Number("server", "issued", to), o.ticket)
		}
	case "Settle":
		o := r.offers[who]
		return r.settle(who, waitqueue.Release{Outcome: o.outcome, Sent: o.sent,
			Ticket: waitqueue.Ticket(o.ticket)}, before, after)
	case "LoseSettlement":
		sent := r.offers[who].sent
		err := r.settle(who, waitqueue.Release{Outcome: waitqueue.Uncertain, Sent: sent}, before,
			after)
		r.offers[who] = &released{}
		return err
	case "AbandonRelease":
		r.late[who] = r.offers[who]
		return r.settle(who, waitqueue.Release{Outcome: waitqueue.Uncertain, Late: true,
			Sent: r.late[who].sent}, before, after)
	case "CleanUp":
		h := lua.HandOver{Others: flag}
		if before.Number("owner", who, "cleanup") >= withdraws {
			h.Withdrawn = r.registration(r.owner(who))
		}
		_, err := r.lock.Release(ctx, r.client, r.owner(who), 0, h)
		must(err)
	case "Deliver", "LoseMessage":
		return r.deliver(do, who, before, after)
	case "Hear":
		if r.zeros[who] == 0 {
			return fmt.Errorf("there was no announcement")
		}
		r.zeros[who] = 0
	case "Disconnect", "Die":
		r.subscribe(who, false)
	case "Subscribe":
		r.subscribe(who, true)
		r.zeros[who]++ // all look after a subscription
	case "Expire", "ExpireGhost":
		r.do("DEL", r.name)
	case "ExpireWaiters":
		r.do("DEL", r.waitersKey())
	case "JavaWaits":
		r.subscribe("java", true)
	case "JavaAsks":
		_, _, holder, err := r.lock.Acquire(ctx, r.client, java, handOverLease, "")
		must(err)
		if holder == nil {
			r.subscribe("java", false)
		}
	case "JavaReleases":
		_, err := r.lock.Release(ctx, r.client, java, 0, lua.HandOver{})
		must(err)
	case "Lose", "GiveUpCleanup": // rlock's own
	default:
		return fmt.Errorf("an unknown step")
	}
	return nil
}

// withdraws is Withdraws of the model.
const withdraws = 2

// reasons and outcomes translate the model's.
var (
	reasons = []waitqueue.Reason{waitqueue.Ended, waitqueue.BecameHead, waitqueue.Paused,
		waitqueue.Retry, waitqueue.HasGrant}
	outcomes = map[waitqueue.Outcome]string{waitqueue.ToAll: "ToAll",
		waitqueue.ToNobody: "ToNobody", waitqueue.ToSuccessor: "ToSuccessor",
		waitqueue.SuccessorRegistered: "SuccessorRegistered"}
)

func (r *handOverReplay) budget() *wait.Budget {
	return wait.NewBudget(context.Background(), nil, wait.Unlimited)
}

// ask executes a request.
func (r *handOverReplay) ask(who string, a *asked) {
	owner, registration := r.owner(who), ""
	if a.registers {
		registration = r.registration(owner)
	}
	var err error
	_, a.ticket, a.holder, err = r.lock.Acquire(context.Background(), r.client, owner,
		handOverLease, registration)
	must(err)
}

// issued compares a ticket with one of the model, where each owner has tickets of its own.
func (r *handOverReplay) issued(who string, model, ticket int64) error {
	key := fmt.Sprint(who, " ", model)
	if known, ok := r.tickets[key]; ok {
		return differ("ticket", known, ticket)
	}
	if ticket <= r.last {
		return fmt.Errorf("the ticket %d after %d", ticket, r.last)
	}
	r.tickets[key], r.last = ticket, ticket
	return nil
}

// leave has a waiter leave its queue.
func (r *handOverReplay) leave(who string, acquired bool, after State) error {
	remains, over := r.waiters[who].Leave(acquired, !acquired)
	want := waitqueue.Nothing
	if !acquired {
		want = waitqueue.Remains(after.Number("owner", who, "remains"))
	}
	if err := differ("remains", want, remains); err != nil {
		return err
	}
	queue := after.At("queue", home(who)).(Sequence)
	return differ("the queue is over", len(queue) == 0, over != nil)
}

// release sends a release, with a successor that comes first or not.
func (r *handOverReplay) release(who string, first bool, before, after State) error {
	s := waitqueue.Streak{Here: 16}
	if first {
		s = waitqueue.Streak{}
	}
	o := &released{}
	if waitqueue.Remains(before.Number("owner", who, "remains")) != waitqueue.Late {
		o.offer = r.queues[home(who)].Offer(r.name, s, true)
	}
	r.offers[who] = o
	to, code := after.Text("wire", "releases", who, "to"), "none"
	if next := o.offer.Successor; next != nil {
		_, code, _ = strings.Cut(next.Owner, ":")
	}
	if err := differ("successor", to, code); err != nil {
		return err
	}
	if to != "none" {
		o.sent = r.send(before, to)
	}
	return differ("first", first, o.offer.First)
}

// execute executes a release.
func (r *handOverReplay) execute(who string, o *released, forOnce bool) {
	h := lua.HandOver{Others: true, SuccessorFirst: o.offer.First}
	if forOnce {
		h.Streak = wire.Streak{Count: 3, Began: 1}
	}
	if next := o.offer.Successor; next != nil {
		h.Successor = r.registration(next.Owner)
	}
	out, err := r.lock.Release(context.Background(), r.client, r.owner(who), 0, h)
	must(err)
	o.ticket = out.Ticket
	switch { // as rlock does
	case !out.Held:
		o.outcome = waitqueue.ToNobody
	case out.To == lua.Successor:
		o.outcome = waitqueue.ToSuccessor
	case out.Ticket != 0:
		o.outcome = waitqueue.SuccessorRegistered
	}
}

// settle ends a release.
func (r *handOverReplay) settle(who string, with waitqueue.Release, before, after State) error {
	o := r.offers[who].offer
	to := before.Text("wire", "releases", who, "to")
	if to == "none" {
		return differ("successor", false, o.Successor != nil)
	}
	abandoned := o.Settle(with)
	left := before.Text("waiter", to, "state") == "LeftOffered"
	cleans := after.Number("owner", to, "cleanup") != 0
	return differ("abandoned", left && cleans && with.Outcome >= waitqueue.Uncertain, abandoned)
}

// deliver delivers or loses a message.
func (r *handOverReplay) deliver(do, who string, before, after State) error {
	ticket := r.tickets[fmt.Sprint(who, " ", after.Number("step", "ticket"))]
	i := slices.IndexFunc(r.grants, func(m waitqueue.Message) bool {
		return m.Owner == r.owner(who) && int64(m.Ticket) == ticket
	})
	if i < 0 {
		return fmt.Errorf("no message for %s with the ticket %d among %v", who, ticket, r.grants)
	}
	m := r.grants[i]
	r.grants = slices.Delete(r.grants, i, i+1)
	if do == "LoseMessage" {
		return nil
	}
	waits := r.queues[home(who)].Deliver(m, func(name string) bool { return name == r.name })
	return differ("waits for messages", before.Truth("waiter", who, "listed"), waits)
}

// compareWaiters compares the states of all waiters.
func (r *handOverReplay) compareWaiters(after State) error {
	for who, w := range r.waiters {
		state, reason := w.State()
		if err := differ("state of "+who, after.Text("waiter", who, "state"),
			state.String()); err != nil {
			return err
		}
		if state == waitqueue.Acquired || state == waitqueue.Left ||
			state == waitqueue.LeftOffered {
			continue
		}
		want := reasons[after.Number("waiter", who, "reason")]
		// A waiter that asks by itself needs no reason.
		if want == waitqueue.Paused &&
			(reason == waitqueue.Ended || reason == waitqueue.BecameHead) {
			continue
		}
		if err := differ("reason of "+who, want, reason); err != nil {
			return err
		}
	}
	return nil
}

// compareServer compares the lock, the registrations, and what was published.
func (r *handOverReplay) compareServer(before, after State) error {
	r.hear()
	fields, err := r.do("HGETALL", r.name).AsStrMap()
	must(err)
	holder := map[string]string{}
	if h := after.Text("server", "holder"); h != "none" {
		holder[r.owner(h)] = "1"
	}
	if err := differ("the lock", fmt.Sprint(holder), fmt.Sprint(fields)); err != nil {
		return err
	}
	registrations, err := r.do("ZRANGE", r.waitersKey(), "0", "-1").AsStrSlice()
	must(err)
	want := []string{}
	for _, who := range after.At("server", "waiters").(Sequence) {
		want = append(want, r.registration(r.owner(who.(string))))
	}
	if err := differ("registrations", fmt.Sprint(want), fmt.Sprint(registrations)); err != nil {
		return err
	}
	return r.compareMessages(before, after)
}

// compareMessages compares the messages on their way.
func (r *handOverReplay) compareMessages(before, after State) error {
	want, have := []string{}, []string{}
	for _, m := range after.At("wire", "messages").(Set) {
		to := m.(Record)["to"].(string)
		want = append(want, fmt.Sprint(r.owner(to), " ",
			r.tickets[fmt.Sprint(to, " ", m.(Record)["ticket"])]))
	}
	for _, m := range r.grants {
		have = append(have, fmt.Sprint(m.Owner, " ", m.Ticket))
	}
	slices.Sort(want)
	slices.Sort(have)
	if err := differ("messages", fmt.Sprint(want), fmt.Sprint(have)); err != nil {
		return err
	}
	told := after.At("wire", "told").(Set)
	for _, p := range handOverProcesses {
		if err := differ("announcement to "+p, slices.Contains(told, Value(p)),
			r.zeros[p] > 0); err != nil {
			return err
		}
	}
	if before.Text("world", "java") == "waits" && after.Text("world", "java") == "waits" {
		heard := r.zeros["java"] > 0
		r.zeros["java"] = 0
		if heard && !after.Truth("world", "javaTold") {
			return fmt.Errorf("the stranger was told")
		}
		if !heard && after.Truth("world", "javaTold") && !before.Truth("world", "javaTold") {
			return fmt.Errorf("the stranger was not told")
		}
	}
	return nil
}
