//go:build redis

package rlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Scripts use no key that their caller does not declare, but for those that say so to Dragonfly.
func TestKindsUseOnlyDeclaredKeys(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithScripts(luashim.Declared))
	requireAllBasics(t, func() rueidis.Client { return s.Client(t) }, true)
	c := newClient(t, s, rlock.Options{})
	for _, k := range slices.Concat(kinds, nonReentrant()) {
		take(t, k.lock(c, k.name), time.Minute)
		if _, err := k.lock(c, k.name).ForceUnlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
