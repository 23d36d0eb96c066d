//go:build model

package model

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// redLockTick is a tick of the model. It is so long that the time for which the test runs does not
// count: a tick that passes is taken from each lease.
const redLockTick = time.Hour

// The scripts of the servers grant, renew and release what the model says.
func TestScriptsFollowRedLock(t *testing.T) {
	t.Parallel()
	servers := redistest.StartAll(t, 3)
	clients := map[string]rueidis.Client{}
	for i, s := range servers {
		clients[fmt.Sprint("n", i+1)] = s.Client(t)
		require.Eventually(t, func() bool { // counted with a delay of a millisecond
			_, rest, found := strings.Cut(s.DoString(t, "INFO", "server"), "uptime_in_seconds:")
			text, _, _ := strings.Cut(rest, "\r")
			up, err := strconv.Atoi(text)
			return found && err == nil && up >= 2
		}, time.Minute, 50*time.Millisecond)
	}
	played := map[string]int{}
	for i, trace := range Traces(t, "RedLock", Some(200), 60, 1) {
		r := &redLockReplay{t: t, name: fmt.Sprint("order:", i), clients: clients, played: played}
		for j := 1; j < len(trace); j++ {
			r.play(trace[j-1], trace[j])
		}
		for node := range clients {
			r.endLease(node)
		}
	}
	t.Logf("steps: %v", played)
	least := 100
	if testing.Short() {
		least = 20
	}
	for _, step := range []string{"Vote", "Renewal", "Release", "Restart", "Tick"} {
		require.Greater(t, played[step], least, step)
	}
}

// redLockDuration returns how long so many ticks take.
func redLockDuration(n Value) time.Duration {
	return time.Duration(n.(int64) * int64(redLockTick))
}

// redLockReplay plays a trace of RedLock against the scripts on real servers.
type redLockReplay struct {
	t       *testing.T
	name    string                    // of the lock
	clients map[string]rueidis.Client // by node
	played  map[string]int            // how often each step was
}

// do has a node execute a command, and returns its reply.
func (r *redLockReplay) do(node string, args ...string) rueidis.RedisResult {
	c := r.clients[node]
	return c.Do(r.t.Context(), c.B().Arbitrary(args...).Build())
}

// redLockOwner returns the name in Redis of a part. The step model uses each name once.
func redLockOwner(owner Value) string {
	part := owner.(Sequence)
	if len(part) == 0 {
		return ""
	}
	return fmt.Sprintf("%v:%v", part[0], part[1])
}

// redLockNode returns what a state has of a node.
func redLockNode(s State, node string) Record { return s.At("node", node).(Record) }

// has returns the owner that a server has granted the lock, and the ticks that it has left.
func (r *redLockReplay) has(node string) (owner string, ttl int64) {
	owners, err := r.do(node, "HKEYS", r.name).AsStrSlice()
	require.NoError(r.t, err)
	require.LessOrEqual(r.t, len(owners), 1)
	if len(owners) == 0 {
		return "", 0
	}
	left, err := r.do(node, "PTTL", r.name).AsInt64()
	require.NoError(r.t, err)
	require.Positive(r.t, left, "a lock without a lease")
	tick := redLockTick.Milliseconds()
	return owners[0], (left + tick - 1) / tick
}

// endLease ends the lease on a node.
func (r *redLockReplay) endLease(node string) {
	require.NoError(r.t, r.do(node, "DEL", r.name).Error())
}

// tick takes a tick from the lease on each server.
func (r *redLockReplay) tick() {
	for node := range r.clients {
		left, err := r.do(node, "PTTL", r.name).AsInt64()
		require.NoError(r.t, err)
		if left -= redLockTick.Milliseconds(); left > 0 {
			require.NoError(r.t,
				r.do(node, "PEXPIRE", r.name, strconv.FormatInt(left, 10)).Error())
		} else {
			r.endLease(node)
		}
	}
}

// delay returns the delay that a client asks for. A server cannot be made to have restarted as long
// ago as in the model: instead the delay is shorter by the time since then.
func (r *redLockReplay) delay(node Record, counts bool) lua.Delay {
	if counts {
		return lua.Delay{For: time.Millisecond} // the servers have run for longer
	}
	return lua.Delay{For: redLockDuration(node["delay"])}
}

// play does to the servers what a step of the model does, and compares what they reply.
func (r *redLockReplay) play(before, after State) {
	step := after["step"].(Record)
	did := step.Text("do")
	r.played[did]++
	node, _ := step["on"].(string)
	owner := ""
	if name, named := step["name"]; named {
		owner = redLockOwner(Sequence{step["who"], name})
	}
	if early, _ := step["early"].(bool); early {
		r.endLease(node) // a fast clock
	}
	var is Record
	if node != "" {
		is = redLockNode(before, node)
	}
	ctx, held := r.t.Context(), lua.Held{Lock: r.name, Owner: owner}
	switch did {
	case "Vote":
		counts := step.Truth("counts")
		lease := redLockDuration(r.part(before, step)["lease"])
		vote, err := lua.AcquireVote(ctx, r.clients[node], r.name, owner, lease, r.delay(is, counts))
		require.NoError(r.t, err)
		holder := redLockOwner(is["owner"])
		switch granted := redLockOwner(redLockNode(after, node)["owner"]) == owner; {
		case granted:
			require.Equal(r.t, lua.Vote{Granted: true}, vote)
		case holder != "" && step["early"] == false:
			require.NotNil(r.t, vote.Holder)
			require.Equal(r.t, holder, vote.Holder.Owner)
		default:
			require.False(r.t, counts)
			require.Positive(r.t, vote.Delayed)
			require.LessOrEqual(r.t, vote.Delayed, r.delay(is, false).For+time.Second)
		}
	case "Renewal":
		lease := redLockDuration(r.part(before, step)["lease"])
		renewed, err := lua.Renew(ctx, r.clients[node], lease, []lua.Held{held})
		require.NoError(r.t, err)
		require.Equal(r.t, redLockOwner(redLockNode(after, node)["owner"]) == owner, renewed[0])
	case "Release":
		out, err := lua.NewExclusive(r.name, false).
			Release(ctx, r.clients[node], owner, 0, lua.HandOver{})
		require.NoError(r.t, err)
		require.Equal(r.t, redLockOwner(is["owner"]) == owner, out.Held)
	case "Restart":
		if step["data"] != "kept" {
			r.endLease(node)
		}
		if step["data"] == "past" {
			lease := redLockNode(after, node).Number("ttl") * redLockTick.Milliseconds()
			require.NoError(r.t, r.do(node, "HSET", r.name, redLockOwner(is["past"]), "1").Error())
			require.NoError(r.t,
				r.do(node, "PEXPIRE", r.name, strconv.FormatInt(lease, 10)).Error())
		}
	case "Tick":
		r.tick()
	}
	for name := range r.clients {
		if name != node && did != "Tick" {
			continue // nothing was sent there
		}
		want := redLockNode(after, name)
		owner, ttl := r.has(name)
		require.Equal(r.t, redLockOwner(want["owner"]), owner, "owner on %s", name)
		require.Equal(r.t, want["ttl"], ttl, "lease on %s", name)
	}
}

// part returns the part that a step is about.
func (r *redLockReplay) part(s State, step Record) Record {
	parts := s.At("parts", step.Text("who"), step.Text("on")).(Sequence)
	return parts[step.Number("name")-1].(Record)
}
