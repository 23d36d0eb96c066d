//go:build redis

package redlock_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// onAll runs f for each server, all at once. f must not use a testing.TB of this goroutine.
func onAll(servers []*redistest.Server, f func(s *redistest.Server)) {
	var all sync.WaitGroup
	for _, s := range servers {
		all.Go(func() { f(s) })
	}
	all.Wait()
}

// script returns what identifies a call of a script on the network, once the server knows it.
func script(file string) string {
	sum := sha1.Sum([]byte(locktest.Scripts()[file]))
	return hex.EncodeToString(sum[:])
}

// connect returns a client of each address, and a function that closes them.
func connect(addresses []string) ([]*rlock.Client, func(), error) {
	var clients []*rlock.Client
	var closes []func()
	closeAll := func() {
		for _, f := range closes {
			f()
		}
	}
	for _, address := range addresses {
		redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}})
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		c, err := rlock.New(redis, rlock.Options{})
		if err != nil {
			redis.Close()
			closeAll()
			return nil, nil, err
		}
		closes = append(closes, func() {
			_ = c.Close(context.Background()) // the process ends anyway
			redis.Close()
		})
		clients = append(clients, c)
	}
	return clients, closeAll, nil
}

// addressesOf returns the addresses of servers.
func addressesOf(servers []*redistest.Server) []string {
	addresses := make([]string, len(servers))
	for i, s := range servers {
		addresses[i] = s.Addr()
	}
	return addresses
}

// takenAway gives the lock on a node to another owner.
func takenAway(t testing.TB, s *redistest.Server) {
	t.Helper()
	s.Do(t, "EVAL", "redis.call('DEL', KEYS[1]); redis.call('HSET', KEYS[1], 'somebody', 1)", "1",
		name)
}
