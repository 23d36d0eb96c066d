package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/status"
	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Threads of Redisson have one name for all their locks.
func TestCyclesOfThreadsAreCertain(t *testing.T) {
	t.Parallel()
	onEachPlace(t, func(t *testing.T, p *place) {
		waits := func(lock, owner string) {
			key := "redisson_lock_queue:{" + lock + "}"
			p.do(t, key, "RPUSH", key, owner)
			key = "redisson_lock_timeout:{" + lock + "}"
			p.do(t, key, "ZADD", key, "4102444800000", owner)
		}
		p.hold(t, "left", java, "1")
		p.hold(t, "right", otherJava, "1")
		waits("right", java)
		require.Equal(t, outcome{}, p.run(t, "ls", "--cycles"))
		waits("left", otherJava)
		waits("left", javaClient+":99") // in nobody's way
		o := p.run(t, "ls", "--cycles")
		require.Equal(t, status.Failed, o.status, o.stderr)
		require.Equal(t, "cycle 1: certain deadlock, until a waiter gives up or a lease ends\n"+
			"  "+short(otherJava)+" waits for left, held by "+short(java)+"\n"+
			"  "+short(java)+" waits for right, held by "+short(otherJava)+"\n"+
			"  To end the cycle: holdfast unlock left --owner "+java+"\n", o.stdout)

		o = p.run(t, "ls", "--cycles", "--json")
		require.Equal(t, status.Failed, o.status)
		require.JSONEq(t, `{"certain":true,"waits":[
			{"waiter":{"owner":"`+otherJava+`"},"lock":"left","holder":{"owner":"`+java+`"}},
			{"waiter":{"owner":"`+java+`"},"lock":"right","holder":{"owner":"`+otherJava+`"}}],
			"unlock":{"name":"left","owner":"`+java+`"}}`, o.stdout)

		o = p.run(t, "unlock", "--yes", "left", "--owner", java)
		require.Zero(t, o.status, o.stderr)
		require.Equal(t, outcome{}, p.run(t, "ls", "--cycles"))
	})
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
		inA, inB := rlock.WithOwner(t.Context()), rlock.WithOwner(t.Context())
		newLeft := (*rlock.Client).NewFairLock
		if p.cluster == nil { // with classic channels nobody registers on a cluster
			newLeft = (*rlock.Client).NewLock
		}
		_, err := newLeft(a, "left").Lock(inA, rlock.Watchdog)
		require.NoError(t, err)
		_, err = b.NewFairLock("right").Lock(inB, rlock.Watchdog)
		require.NoError(t, err)
		// Without their owners, or this process would notice the cycle by itself.
		wantsRight := p.await(t, a.NewFairLock("right"))
		wantsLeft := p.await(t, newLeft(b, "left"))
		if p.cluster == nil {
			p.waitForRegistration(t, "left")
		}
		o := p.run(t, "ls", "--cycles")
		require.Zero(t, o.status, o.stderr)
		require.Contains(t, o.stdout, "cycle 1: possible deadlock, ")
		require.Equal(t, 2, strings.Count(o.stdout, " waits for "), o.stdout)
		require.NotContains(t, o.stdout, "cycle 2")

		// What it says ends the circle.
		words := strings.Fields(unlockLine(o.stdout))
		o = p.run(t, append([]string{"unlock", "--yes"}, words...)...)
		require.Zero(t, o.status, o.stderr)
		woken := map[string]<-chan locktest.Outcome{"left": wantsLeft, "right": wantsRight}[words[0]]
		requireWoken(t, woken)
	})
}
