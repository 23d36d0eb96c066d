package lua

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/fragments"
)

//go:embed *.lua common/*.lua
var sources embed.FS

// scripts holds the sources of all scripts as servers get them, by file.
var scripts = fragments.Read(sources)

// script is one .lua file with the fragments that it needs, and the SHA-1 by which servers know it.
type script struct {
	source string
	sha1   string
}

// load returns a script. It panics if there is none of that name, which cannot happen in a released
// build.
func load(file string) *script {
	source, known := scripts[file]
	if !known {
		panic("no script " + file)
	}
	sum := sha1.Sum([]byte(source))
	return &script{source: source, sha1: hex.EncodeToString(sum[:])}
}

// run executes the script with EVALSHA, and once more with EVAL if the server does not know it. All
// keys must be in one slot.
func (s *script) run(ctx context.Context, c rueidis.CoreClient, keys, args []string) reply {
	n := int64(len(keys))
	bySHA := c.B().Evalsha().Sha1(s.sha1).Numkeys(n).Key(keys...).Arg(args...).Build()
	message, err := c.Do(ctx, bySHA).ToMessage()
	if refusal, ok := rueidis.IsRedisErr(err); ok && refusal.IsNoScript() {
		bySource := c.B().Eval().Script(s.source).Numkeys(n).Key(keys...).Arg(args...).Build()
		message, err = c.Do(ctx, bySource).ToMessage()
	}
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return reply{message: message, err: Classify(err)}
}

// milliseconds formats a lease for a script. Fractions are cut off: a lease in Redis is never
// longer than asked for.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}

// The messages on a lock's channel.
const (
	// Unlocked means that the lock is free: one waiter may take it.
	Unlocked = "0"
	// UnlockedForAll means that every waiter should ask for the lock.
	UnlockedForAll = "1"
)

// publish returns the command that publishes a message.
func publish(sharded bool) string {
	if sharded {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// NoExpiry is the TTL of a lock that is held but never expires. This library never takes a lock
// that way; another client might.
const NoExpiry time.Duration = -1

// free is the PTTL of a key that does not exist.
const free = -2

// ttl converts a PTTL reply. A TTL that is too long for a Duration becomes the longest one.
func ttl(milliseconds int64) time.Duration {
	switch {
	case milliseconds == free:
		return 0
	case milliseconds < 0:
		return NoExpiry
	}
	milliseconds = min(milliseconds, math.MaxInt64/int64(time.Millisecond))
	return time.Duration(milliseconds) * time.Millisecond
}
