package owner

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"strings"
)

// Kind says how the waiters of a lock are woken. Locks of one name, but of different kinds, exclude
// each other, but do not wake each other's waiters.
type Kind uint8

// The kinds that a number can say.
const (
	Unknown   Kind = iota
	Plain          // reentrant, non-reentrant and fenced locks
	Fair           // in the order of a queue in Redis
	ReadWrite      // both sides of a read-write lock
)

// String returns the kind as an adjective.
func (k Kind) String() string {
	return [...]string{"unknown", "plain", "fair", "read-write"}[k]
}

// The bits of a number, from the highest: 0, so that it is a positive int64; 1, which tells it from
// the thread ids of Redisson; the kind; a random part; and a part that counts.
const (
	marked     = 1 << 62
	kindShift  = 60
	countBits  = 28
	kindMask   = 3
	countsMask = 1<<countBits - 1
)

// Number returns the number of an acquisition in Redis. It differs from those with another count,
// until that has grown by 2^28, and by its random part from one with the same count that another
// copy of this process has drawn: a virtual machine may be cloned with its memory.
func Number(k Kind, count uint64) uint64 {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return marked | uint64(k)<<kindShift | uint64(binary.BigEndian.Uint32(random[:]))<<countBits |
		count&countsMask
}

// KindOf returns the kind in a name "<client id>:<number>"; Unknown if the number is not one of
// [Number].
func KindOf(name string) Kind {
	_, number, _ := strings.Cut(name, ":")
	number, _, _ = strings.Cut(number, ":") // a writer has a suffix
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < marked {
		return Unknown
	}
	return Kind(n >> kindShift & kindMask)
}
