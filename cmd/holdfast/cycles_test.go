package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/status"
	"holdfast/rlock"
)

func TestCyclesOfOwnersAreCertain(t *testing.T) {
	t.Parallel()
	onEachPlace(t, func(t *testing.T, p *place) {
		a, b := p.client(t), p.client(t)
		inA, inB := rlock.WithOwner(t.Context()), rlock.WithOwner(t.Context())
		left, err := a.NewLock("left").Lock(inA, rlock.Watchdog)
		require.NoError(t, err)
		right, err := b.NewFairLock("right").Lock(inB, rlock.Watchdog)
		require.NoError(t, err)
		require.Equal(t, outcome{}, p.run(t, "ls", "--cycles"))

		wantsRight := p.await(t, inA, a.NewFairLock("right"))
		require.Equal(t, outcome{}, p.run(t, "ls", "--cycles"))
		p.await(t, inB, b.NewLock("left"))
		p.waitForRegistration(t, "left")
		o := p.run(t, "ls", "--cycles")
		require.Equal(t, status.Failed, o.status, o.stderr)
		require.Equal(t, "circle 1: certain, until one gives up or a lease ends\n"+
			sortedWaits("  "+short(left.Owner())+" waits for right, held by "+short(right.Owner()),
				"  "+short(right.Owner())+" waits for left, held by "+short(left.Owner()), o.stdout)+
			"  to end it: holdfast unlock "+unlockLine(o.stdout)+"\n", o.stdout)

		o = p.run(t, "ls", "--cycles", "--json")
		require.Equal(t, status.Failed, o.status)
		var one struct {
			Certain bool
			Waits   []struct {
				Lock           string
				Waiter, Holder struct{ Owner string }
			}
			Unlock struct{ Name, Owner string }
		}
		require.NoError(t, json.Unmarshal([]byte(o.stdout), &one))
		require.True(t, one.Certain)
		require.Len(t, one.Waits, 2)

		// What it says ends the circle.
		words := strings.Fields(unlockLine(p.run(t, "ls", "--cycles").stdout))
		o = p.run(t, append([]string{"unlock", "--yes"}, words...)...)
		require.Zero(t, o.status, o.stderr)
		if words[0] == "right" {
			wantsRight.requireWoken(t)
		}
		require.Zero(t, p.run(t, "ls", "--cycles").status)
	})
}

// sortedWaits returns the lines in the order in which they are in text.
func sortedWaits(a, b, text string) string {
	if strings.Index(text, a) > strings.Index(text, b) {
		a, b = b, a
	}
	return a + "\n" + b + "\n"
}

// unlockLine returns what is to be unlocked.
func unlockLine(text string) string {
	_, line, _ := strings.Cut(text, "holdfast unlock ")
	line, _, _ = strings.Cut(line, "\n")
	return line
}

func TestCyclesOfProcessesArePossible(t *testing.T) {
	t.Parallel()
	onEachPlace(t, func(t *testing.T, p *place) {
		a, b := p.client(t), p.client(t)
		take(t, a.NewLock("left")) // each by an owner of its own
		take(t, b.NewLock("right"))
		p.await(t, t.Context(), a.NewFairLock("right"))
		p.await(t, t.Context(), b.NewFairLock("left"))
		o := p.run(t, "ls", "--cycles")
		require.Zero(t, o.status, o.stderr)
		require.Contains(t, o.stdout, "circle 1: possible, ")
		require.Equal(t, 2, strings.Count(o.stdout, " waits for "))
		require.NotContains(t, o.stdout, "circle 2")
	})
}

func TestCyclesNameProcessesThatAreKnown(t *testing.T) {
	t.Parallel()
	p := single(t)
	for _, client := range []string{javaClient, strings.Split(otherJava, ":")[0]} {
		p.do(t, client, "HSET", "holdfast_client:{"+client+"}", "program", "billing", "host",
			"web-"+client[:1], "pid", "4711", "start", "1700000000123")
	}
	p.hold(t, "it's", java, "1")
	p.hold(t, "b", otherJava, "1")
	p.do(t, "b", "RPUSH", "redisson_lock_queue:{b}", java)
	p.do(t, "it's", "RPUSH", "redisson_lock_queue:{it's}", otherJava)
	o := p.run(t, "ls", "--cycles")
	require.Equal(t, status.Failed, o.status)
	require.Contains(t, o.stdout, "  "+short(java)+" (billing on web-8 (pid 4711)) waits for b, held by "+
		short(otherJava)+" (billing on web-1 (pid 4711))\n")
	require.Contains(t, []string{`'it'\''s' --owner ` + java, "b --owner " + otherJava},
		unlockLine(o.stdout))
}
