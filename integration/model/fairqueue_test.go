//go:build model

package model

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/inprocess"
	"holdfast/lua"
)

const (
	fairLock = "job"
	// fairTick is a tick of FairQueueSteps. It divides all times of the scripts.
	fairTick = 25 * time.Millisecond
	// fairEver is Ever of FairQueue: no limit.
	fairEver int64 = 1000000
	// fairLease is Lease of FairQueueSteps.cfg, whose other times are those of the code.
	fairLease = 100 * fairTick
)

// The scripts reply, write and publish what the model says.
func TestScriptsFollowFairQueue(t *testing.T) {
	t.Parallel()
	for i, trace := range Traces(t, "FairQueue", Some(200), 40, 1) {
		synctest.Test(t, func(t *testing.T) {
			r := newFairReplay(t)
			for j, s := range trace[1:] {
				r.where = fmt.Sprintf("trace %d, state %d: %v", i, j+2, s["step"])
				r.step(trace[j], s)
			}
		})
	}
}

// fairReplay does to a server what a trace of FairQueueSteps tells.
type fairReplay struct {
	t       *testing.T
	server  *inprocess.Server
	client  rueidis.Client
	monitor *bufio.Reader // of all commands
	markers int           // how many were written among those
	where   string        // in the traces
	lock    lua.Fair
	listens map[string]func() // by owner: stops its subscription
}

func newFairReplay(t *testing.T) *fairReplay {
	t.Helper()
	s, err := inprocess.New()
	require.NoError(t, err)
	t.Cleanup(s.Close)
	option := s.ClientOption()
	c, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	conn, err := option.DialCtxFn(t.Context(), "", &net.Dialer{}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	r := &fairReplay{t: t, server: s, client: c, monitor: bufio.NewReader(conn),
		lock: lua.Fair{Lock: fairLock, Counted: true}, listens: map[string]func(){}}
	t.Cleanup(func() {
		for _, stop := range r.listens {
			stop()
		}
	})
	_, err = fmt.Fprint(conn, "*1\r\n$7\r\nMONITOR\r\n")
	require.NoError(t, err)
	_, err = r.monitor.ReadString('\n')
	require.NoError(t, err)
	return r
}

// fairOwner returns the name in Redis of an owner of the model: its client comes first.
func fairOwner(owner string) string {
	if owner <= "c" { // Siblings
		return "client:" + owner
	}
	return owner + ":" + owner
}

// step goes from one state to the next.
func (r *fairReplay) step(from, to State) {
	r.t.Helper()
	step := to["step"].(Record)
	told, announces := step["told"].(Sequence)
	switch step["do"] {
	case "Come", "Ask", "ExecuteLate", "Try":
		r.ask(step)
	case "Unlock", "CleanUp":
		r.release(step)
	case "JavaCome", "JavaAsk", "JavaUnlock", "JavaLeave":
		r.java(from, to)
		announces = false
	case "Renew":
		r.do("PEXPIRE", fairLock, fairMilliseconds(to["left"]))
	case "Tick":
		time.Sleep(time.Duration(step.Number("ticks")) * fairTick)
		r.server.CatchUp()
	}
	published := r.published()
	if announces {
		r.requireMessages(told, published)
	}
	r.listen(to)
	r.requireState(to)
}

func (r *fairReplay) ask(step Record) {
	r.t.Helper()
	ends, window := step.Number("ends"), step.Number("window")
	q := lua.FairRequest{Owner: fairOwner(step.Text("who")), Count: 1,
		Lease: fairLease, Waits: step["do"] != "Try",
		Window: time.Duration(window) * fairTick}
	if ends != fairEver {
		left := time.Duration(ends) * fairTick
		q.Budget, q.Until = max(left, time.Millisecond), time.Now().Add(left)
	}
	holder, err := r.lock.Acquire(context.Background(), r.client, q)
	require.NoError(r.t, err, r.where)
	if step["holder"] == "none" {
		require.Nil(r.t, holder, r.where)
		return
	}
	require.NotNil(r.t, holder, r.where)
	if step["holder"] == "nobody" {
		require.Empty(r.t, holder.Owner, r.where)
	} else {
		require.Equal(r.t, fairOwner(step.Text("holder")), holder.Owner, r.where)
	}
	nap := time.Duration(step.Number("nap")) * fairTick
	switch {
	case ends <= 0:
		nap = 10 * time.Millisecond
	case holder.Nap == 0: // until the end of the lease
		require.Equal(r.t, nap, min(holder.TTL, lua.MaxNap), r.where)
		return
	}
	require.Equal(r.t, nap, holder.Nap, r.where)
}

func (r *fairReplay) release(step Record) {
	r.t.Helper()
	var owners []string
	for _, name := range step["names"].(Set) {
		owners = append(owners, fairOwner(name.(string)))
	}
	_, err := r.lock.Release(context.Background(), r.client, 0, owners...)
	require.NoError(r.t, err, r.where)
}

// java writes what Redisson's scripts would write: only the model has them.
func (r *fairReplay) java(from, to State) {
	r.t.Helper()
	for _, entry := range fairQueueOf(from) {
		r.do("LREM", fairKeys.queue, "0", entry.owner)
		r.do("ZREM", fairKeys.scores, entry.owner)
	}
	now := time.Now().UnixMilli()
	for _, entry := range fairQueueOf(to) {
		r.do("RPUSH", fairKeys.queue, entry.owner)
		r.do("ZADD", fairKeys.scores, strconv.FormatInt(now+entry.score, 10), entry.owner)
	}
	if holder := to.Text("lock"); holder != from["lock"] {
		r.do("DEL", fairLock)
		if holder != "none" {
			r.do("HSET", fairLock, fairOwner(holder), "1")
			r.do("PEXPIRE", fairLock, fairMilliseconds(to["left"]))
		}
	}
}

var fairKeys = struct{ queue, scores, turn, budgets string }{
	lua.Prefix("redisson_lock_queue", fairLock), lua.Prefix("redisson_lock_timeout", fairLock),
	lua.Prefix("holdfast_lock_turn", fairLock), lua.Prefix("holdfast_lock_budget", fairLock),
}

// fairMilliseconds returns how many milliseconds so many ticks take.
func fairMilliseconds(ticks Value) string {
	return strconv.FormatInt(ticks.(int64)*fairTick.Milliseconds(), 10)
}

// fairEntry is an owner in the queue, and in how many milliseconds its score passes.
type fairEntry struct {
	owner string
	score int64
}

// fairQueueOf returns the queue of a state.
func fairQueueOf(s State) (entries []fairEntry) {
	for _, value := range s["queue"].(Sequence) {
		entry := value.(Record)
		entries = append(entries, fairEntry{fairOwner(entry.Text("who")),
			entry.Number("score") * fairTick.Milliseconds()})
	}
	return entries
}

// do executes a command and returns its reply.
func (r *fairReplay) do(args ...string) rueidis.RedisResult {
	r.t.Helper()
	got := r.client.Do(context.Background(), r.client.B().Arbitrary(args...).Build())
	if err := got.Error(); !rueidis.IsRedisNil(err) {
		require.NoError(r.t, err, r.where)
	}
	return got
}

// published returns the messages since the last call, by the commands before a marker.
func (r *fairReplay) published() (messages []string) {
	r.t.Helper()
	r.markers++
	marker := "marker-" + strconv.Itoa(r.markers)
	r.do("ECHO", marker)
	for {
		line, err := r.monitor.ReadString('\n')
		require.NoError(r.t, err, r.where)
		if strings.Contains(line, `"`+marker+`"`) {
			return messages
		}
		if _, command, found := strings.Cut(line, ` lua] "PUBLISH" `); found {
			messages = append(messages, strings.TrimSpace(command))
		}
	}
}

// requireMessages asserts that a command has published what the model says.
func (r *fairReplay) requireMessages(told Sequence, published []string) {
	r.t.Helper()
	var want []string
	for _, each := range told {
		message := each.(Sequence)
		want = append(want, fmt.Sprintf("%q %q",
			lua.FairChannel(fairLock, fairOwner(message[0].(string))), fairMilliseconds(message[1])))
	}
	require.Equal(r.t, want, published, r.where)
}

// listen begins and ends subscriptions, so that the owners listen that do in a state.
func (r *fairReplay) listen(s State) {
	r.t.Helper()
	for owner, is := range s["ear"].(Record) {
		stop := r.listens[owner]
		switch {
		case is == "yes" && stop == nil:
			channel := lua.FairChannel(fairLock, fairOwner(owner))
			sub := r.server.Redis().NewSubscriber()
			sub.Subscribe(channel)
			go func() {
				for range sub.Messages() {
				}
			}()
			r.listens[owner] = func() {
				sub.Unsubscribe(channel)
				sub.Close()
			}
		case is != "yes" && stop != nil:
			stop()
			delete(r.listens, owner)
		}
	}
}

// requireState asserts that the server has what a state says.
func (r *fairReplay) requireState(s State) {
	r.t.Helper()
	now := time.Now().UnixMilli()

	holders, err := r.do("HKEYS", fairLock).AsStrSlice()
	require.NoError(r.t, err, r.where)
	if s["lock"] == "none" {
		require.Empty(r.t, holders, r.where)
	} else {
		require.Equal(r.t, []string{fairOwner(s.Text("lock"))}, holders, r.where)
		left, err := r.do("PTTL", fairLock).AsInt64()
		require.NoError(r.t, err, r.where)
		require.Equal(r.t, fairMilliseconds(s["left"]), strconv.FormatInt(left, 10), r.where)
	}

	owners, err := r.do("LRANGE", fairKeys.queue, "0", "-1").AsStrSlice()
	require.NoError(r.t, err, r.where)
	scores := r.scores(fairKeys.scores)
	require.Len(r.t, scores, len(owners), r.where)
	var queue []fairEntry
	for _, owner := range owners {
		queue = append(queue, fairEntry{owner, scores[owner] - now})
	}
	require.Equal(r.t, fairQueueOf(s), queue, r.where)

	budgets := map[string]int64{}
	for owner, ends := range s["budget"].(Record) {
		if ends != fairEver {
			budgets[fairOwner(owner)] = ends.(int64) * fairTick.Milliseconds()
		}
	}
	got := r.scores(fairKeys.budgets)
	for owner := range got {
		got[owner] = max(0, got[owner]-now)
	}
	require.Equal(r.t, budgets, got, r.where)

	r.requireTurn(s["turn"].(Record), now)
}

// requireTurn asserts that the server has the turn of the model.
func (r *fairReplay) requireTurn(turn Record, now int64) {
	r.t.Helper()
	text, _ := r.do("GET", fairKeys.turn).ToString()
	if turn["who"] == "none" {
		require.Empty(r.t, text, r.where)
		return
	}
	words := strings.Fields(text)
	require.GreaterOrEqual(r.t, len(words), 3, r.where)
	ends, err := strconv.ParseInt(words[0], 10, 64)
	require.NoError(r.t, err, r.where)
	score, err := strconv.ParseInt(words[1], 10, 64)
	require.NoError(r.t, err, r.where)
	words[0] = strconv.FormatInt(max(0, ends-now), 10)
	words[1] = strconv.FormatInt(score-now, 10)
	want := []string{fairMilliseconds(turn["ends"]), fairMilliseconds(turn["score"]),
		fairOwner(turn.Text("who"))}
	if turn["hurried"] != int64(0) {
		want = append(want, fairMilliseconds(turn["hurried"]))
	}
	require.Equal(r.t, want, words, r.where)
	lasts, err := r.do("PTTL", fairKeys.turn).AsInt64()
	require.NoError(r.t, err, r.where)
	require.Equal(r.t, fairMilliseconds(turn["ttl"]), strconv.FormatInt(lasts, 10), r.where)
}

// scores returns the members of a sorted set.
func (r *fairReplay) scores(key string) map[string]int64 {
	r.t.Helper()
	values, err := r.do("ZRANGE", key, "0", "-1", "WITHSCORES").AsStrSlice()
	require.NoError(r.t, err, r.where)
	scores := map[string]int64{}
	for pair := range slices.Chunk(values, 2) {
		n, err := strconv.ParseFloat(pair[1], 64)
		require.NoError(r.t, err, r.where)
		scores[pair[0]] = int64(n)
	}
	return scores
}
