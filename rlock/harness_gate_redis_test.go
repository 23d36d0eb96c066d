//go:build redis

package rlock_test

import "github.com/redis/rueidis"

// keepCommands returns a client that holds commands with that argument back, as a connection that
// hangs would.
func keepCommands(c rueidis.Client, argument string) *gated {
	g := keepReplies(c, argument)
	g.unsent = true
	return g
}
