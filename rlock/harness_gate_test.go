package rlock_test

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/rueidis"
)

// gated is a rueidis client that keeps some commands back, those that have a given argument: before they are sent, or
// their answers.
type gated struct {
	rueidis.Client
	argument string
	unsent   bool
	kept     chan struct{} // gets a value for each command kept back
	opened   chan struct{}
	passes   chan struct{}
	once     sync.Once
}

// keepAnswers makes a client that executes commands with that argument, and keeps their answers back.
func keepAnswers(c rueidis.Client, argument string) *gated {
	return &gated{Client: c, argument: argument, kept: make(chan struct{}, 1000), opened: make(chan struct{}),
		passes: make(chan struct{})}
}

// keepCommands makes a client that keeps commands with that argument back, as a connection that hangs would.
func keepCommands(c rueidis.Client, argument string) *gated {
	g := keepAnswers(c, argument)
	g.unsent = true
	return g
}

func (g *gated) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	kept := slices.Contains(command.Commands(), g.argument) // before Do, which recycles the command
	if kept && g.unsent {
		g.wait()
	}
	result := g.Client.Do(ctx, command)
	if kept && !g.unsent {
		g.wait()
	}
	return result
}

func (g *gated) wait() {
	g.kept <- struct{}{}
	select {
	case <-g.opened:
	case <-g.passes:
	}
}

// pass lets one through that is kept back.
func (g *gated) pass() { g.passes <- struct{}{} }

// open lets everything through from now on.
func (g *gated) open() { g.once.Do(func() { close(g.opened) }) }
