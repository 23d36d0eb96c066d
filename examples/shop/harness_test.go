package main

import (
	"context"
	"sync"
	"testing"

	"holdfast/rlocktest"
)

// memory has the numbers of a shop in a test.
type memory struct {
	mu      sync.Mutex
	numbers map[string]int64 // guarded by mu
	onSet   func(key string) // called before a number is written, if it is not nil
}

func (m *memory) Get(ctx context.Context, key string) (int64, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.numbers[key], nil
}

func (m *memory) Set(ctx context.Context, key string, value int64) error {
	if m.onSet != nil {
		m.onSet(key)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.numbers[key] = value
	return nil
}

// newShop returns a shop with a Redis and data of its own. The Redis fails the test if the shop
// keeps a lock.
func newShop(t *testing.T, numbers map[string]int64) (*Shop, *rlocktest.Redis, *memory) {
	t.Helper()
	redis := rlocktest.New(t)
	data := &memory{numbers: numbers}
	return New(redis.Client(), data), redis, data
}
