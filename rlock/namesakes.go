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
	used map[string]spelling // guarded by mu; by the name without braces
}

// spelling is a set of spellings of one name.
type spelling uint8

const (
	bare spelling = 1 << iota
	braced
)

// use records a name, and reports whether it completes a pair: once per pair, until forgotten.
func (ns *namesakes) use(name string) (shared bool) {
	inner, as := name, bare
	if strings.Contains(name, "{") {
		inner, as = strings.TrimSuffix(name[1:], "}"), braced
		if name != "{"+inner+"}" || strings.Contains(inner, "{") {
			return false // no other name has the same queue
		}
	}
	ns.mu.Lock()
	defer ns.mu.Unlock()
	before := ns.used[inner]
	if before&as != 0 {
		return false
	}
	if ns.used == nil || len(ns.used) >= mostNames && before == 0 {
		ns.used = make(map[string]spelling)
	}
	ns.used[inner] = before | as
	return before != 0
}

// useFair logs a warning if another fair lock has the same queue. It does not refuse the lock,
// because the names may be shared with Redisson.
func (c *Client) useFair(name string) {
	if c.fairNames.use(name) {
		c.warn(
			"holdfast: two fair locks share one queue, since their names differ in braces only: "+
				"who waits for one keeps the other from everybody else; use one of the two names",
			"lock",
			name,
			"queue",
			lua.QueueKey(name),
		)
	}
}
