package rlock_test

import (
	"context"
	"slices"

	"github.com/redis/rueidis"
)

// These tests are about a writer that reads, and about either hold when the other ends.

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
