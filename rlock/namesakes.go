package rlock

import (
	"strings"
	"sync"

	"holdfast/lua"
)

// mostNames is how many names of fair locks are kept for comparison. When there are more all are forgotten, and begun anew.
const mostNames = 1024

// namesakes finds fair locks with different names and one queue: Redisson's rule for names makes one key of "x" and "{x}".
type namesakes struct {
	mu   sync.Mutex
	used map[string]spelling // guarded by mu; by the name without braces
}

// spelling is which of the two spellings of a name were used.
type spelling uint8

const (
	bare spelling = 1 << iota
	braced
)

// use notes that a fair lock of that name is asked for, and returns true when the other spelling was used before, once.
func (n *namesakes) use(name string) (shared bool) {
	inner, as := name, bare
	if strings.Contains(name, "{") {
		inner, as = strings.TrimSuffix(name[1:], "}"), braced
		if name != "{"+inner+"}" || strings.Contains(inner, "{") {
			return false // no other name has the same queue
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.used[inner]
	if before&as != 0 {
		return false
	}
	if n.used == nil || len(n.used) >= mostNames && before == 0 {
		n.used = make(map[string]spelling)
	}
	n.used[inner] = before | as
	return before != 0
}

// useFair notes that a fair lock is asked for, and warns if another one has the same queue. To refuse it would break names that
// are shared with Redisson.
func (w *wire) useFair(name string) {
	if w.fairNames.use(name) {
		w.warn("holdfast: two fair locks share one queue, since their names differ in braces only: who waits for one keeps the other "+
			"from everybody else; use one of the two names", "lock", name, "queue", lua.QueueKey(name))
	}
}
