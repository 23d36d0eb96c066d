package rlock

import (
	"strings"
	"sync"

	"holdfast/lua"
)

// mostNames bounds the number of names kept. When it is exceeded, all are forgotten.
const mostNames = 1024

// namesakes finds fair locks that share a queue: by Redisson's rule "x" and "{x}" have the same
// key.
type namesakes struct {
	mu   sync.Mutex
	used map[string]bool // guarded by mu
}

// use records a name, and reports whether it completes a pair: once per pair, until forgotten.
func (ns *namesakes) use(name string) (shared bool) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.used[name] {
		return false
	}
	other := "{" + name + "}"
	if strings.HasPrefix(name, "{") {
		other = strings.TrimSuffix(name[1:], "}")
	}
	shared = ns.used[other] && lua.QueueKey(other) == lua.QueueKey(name)
	if ns.used == nil || len(ns.used) >= mostNames {
		ns.used = make(map[string]bool)
	}
	ns.used[name] = true
	return shared
}

// useFair logs a warning if another fair lock has the same queue. It does not refuse the lock,
// because the names may be shared with Redisson.
func (c *Client) useFair(name string) {
	if c.fairNames.use(name) {
		c.warn("holdfast: two fair locks share one queue, since their names differ in braces "+
			"only: who waits for one keeps the other from everybody else; use one of the two names",
			"lock", name, "queue", lua.QueueKey(name))
	}
}
