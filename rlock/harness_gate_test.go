package rlock_test

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/rueidis"
)

// gated is a rueidis client that holds commands with a given argument back before they are sent, or
// their replies.
type gated struct {
	rueidis.Client
	argument string
	unsent   bool
	kept     chan struct{} // receives a value for each command held back
	opened   chan struct{}
	passes   chan struct{}
	once     sync.Once
}

// keepReplies returns a client that executes commands with that argument, and holds their replies
// back. c has one connection ([redistest.OneConnection]): a caller that would have to dial another
// one sends nothing, and then a worker sends the command again.
func keepReplies(c rueidis.Client, argument string) *gated {
	return &gated{
		Client:   c,
		argument: argument,
		kept:     make(chan struct{}, 1000),
		opened:   make(chan struct{}),
		passes:   make(chan struct{}),
	}
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

// pass lets one that is held back pass.
func (g *gated) pass() { g.passes <- struct{}{} }

// open lets everything pass from now on.
func (g *gated) open() { g.once.Do(func() { close(g.opened) }) }

// stepwise is a rueidis client that holds each command with a given argument until it is told to
// send it.
type stepwise struct {
	rueidis.Client
	argument string
	arrived  chan struct{} // receives a value for each waiting command
	step     chan struct{} // lets one pass; all of them when it is closed
}

func (s *stepwise) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if slices.Contains(command.Commands(), s.argument) {
		s.arrived <- struct{}{}
		<-s.step
	}
	return s.Client.Do(ctx, command)
}
