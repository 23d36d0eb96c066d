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

// redLockTick is a tick of the model on real servers. It is long, so that what really passes
// meanwhile does not count: a tick that passes is taken from each lease.
const redLockTick = time.Hour

func redLockTicks(n Value) time.Duration {
	return time.Duration(n.(int64) * int64(redLockTick))
}

// redLock plays the traces of RedLock against the scripts on real servers. Package redlock plays
// them against its state machine.
type redLock struct {
	t       *testing.T
	name    string // of the lock
	clients map[string]rueidis.Client
	played  map[string]int
}

func (r *redLock) do(node string, args ...string) rueidis.RedisResult {
	c := r.clients[node]
	return c.Do(r.t.Context(), c.B().Arbitrary(args...).Build())
}

// redLockOwner is the name of a part. Names that the model uses once are unique on a node.
func redLockOwner(owner Value) string {
	part := owner.(Sequence)
	if len(part) == 0 {
		return ""
	}
	return fmt.Sprintf("%v:%v", part[0], part[1])
}

func redLockNode(s State, node string) Record { return s["node"].(Record)[node].(Record) }

// has returns what a server has, in the model's terms.
func (r *redLock) has(node string) (owner string, ttl int64) {
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

func (r *redLock) ends(node string) { require.NoError(r.t, r.do(node, "DEL", r.name).Error()) }

// tick takes a tick from the lease on each server.
func (r *redLock) tick() {
	for node := range r.clients {
		left, err := r.do(node, "PTTL", r.name).AsInt64()
		require.NoError(r.t, err)
		if left -= redLockTick.Milliseconds(); left > 0 {
			require.NoError(r.t,
				r.do(node, "PEXPIRE", r.name, strconv.FormatInt(left, 10)).Error())
		} else {
			r.ends(node)
		}
	}
}

// delay returns what a client asks a server for that has restarted as long ago as in the model. The
// server's uptime cannot be set: the delay that it has to exceed is shorter by what passed since.
func (r *redLock) delay(node Record, counts bool) lua.Delay {
	if counts {
		return lua.Delay{For: time.Millisecond} // the servers have run for longer
	}
	return lua.Delay{For: redLockTicks(node["delay"])}
}

// play does to the servers what a step of the model does, and compares what they reply.
func (r *redLock) play(before, after State) {
	step := after["step"].(Record)
	did := step["do"].(string)
	r.played[did]++
	node, _ := step["on"].(string)
	owner := ""
	if name, named := step["name"]; named {
		owner = redLockOwner(Sequence{step["who"], name})
	}
	if early, _ := step["early"].(bool); early {
		r.ends(node) // a fast clock
	}
	var is Record
	if node != "" {
		is = redLockNode(before, node)
	}
	ctx, held := r.t.Context(), lua.Held{Lock: r.name, Owner: owner}
	switch did {
	case "Vote":
		counts := step["counts"].(bool)
		lease := redLockTicks(r.part(before, step)["lease"])
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
		lease := redLockTicks(r.part(before, step)["lease"])
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
			r.ends(node)
		}
		if step["data"] == "past" {
			lease := redLockNode(after, node)["ttl"].(int64) * redLockTick.Milliseconds()
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
func (r *redLock) part(s State, step Record) Record {
	parts := s["parts"].(Record)[step["who"].(string)].(Record)[step["on"].(string)]
	return parts.(Sequence)[step["name"].(int64)-1].(Record)
}

func TestRedLockScriptsFollowTheModel(t *testing.T) {
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
	for i, trace := range Traces(t, "RedLock", 200, 60, 1) {
		r := &redLock{t: t, name: fmt.Sprint("order:", i), clients: clients, played: played}
		for j := 1; j < len(trace); j++ {
			r.play(trace[j-1], trace[j])
		}
		for node := range clients {
			r.ends(node)
		}
	}
	t.Logf("steps: %v", played)
	for _, step := range []string{"Vote", "Renewal", "Release", "Restart", "Tick"} {
		require.Greater(t, played[step], 100, step)
	}
}
