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

// load returns the script of a file that exists.
func load(file string) *script {
	sum := sha1.Sum([]byte(scripts[file]))
	return &script{source: scripts[file], sha1: hex.EncodeToString(sum[:])}
}

// run executes the script with EVALSHA, and once more with EVAL if the server does not know it. All
// keys must be in one slot.
func (s *script) run(
	ctx context.Context, c rueidis.CoreClient, keys []string, args ...string,
) reply {
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

// Ask sends ASKING, which must precede a command for a slot that is moving to the node of c.
func Ask(ctx context.Context, c rueidis.CoreClient) error {
	return Classify(c.Do(ctx, c.B().Asking().Build()).Error())
}

// Acknowledged blocks until the given number of replicas have everything that was written through
// c, a dedicated connection, but for at most timeout. It returns how many have it by then.
func Acknowledged(
	ctx context.Context, c rueidis.CoreClient, replicas int, timeout time.Duration,
) (int, error) {
	wait := c.B().Wait().Numreplicas(int64(replicas)).Timeout(timeout.Milliseconds()).Build()
	n, err := c.Do(ctx, wait).ToInt64()
	return int(n), Classify(err)
}

// milliseconds formats a lease for a script. Fractions are cut off: a lease in Redis is never
// longer than asked for.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}

// The messages on a lock's channel.
const (
	Unlocked       = "0" // the lock is free: one waiter may take it
	UnlockedForAll = "1" // every waiter should ask for the lock
)

// publish has the command that publishes a message on a channel that is sharded or not.
var publish = map[bool]string{false: "PUBLISH", true: "SPUBLISH"}

var flag = map[bool]string{false: "0", true: "1"}

// NoExpiry is the TTL of a lock that is held but never expires. This library never takes a lock
// that way; another client might.
const NoExpiry time.Duration = -1

// free is the PTTL of a key that does not exist.
const free = -2

// ttl converts a PTTL reply. A TTL that is too long for a Duration becomes the longest one.
func ttl(milliseconds int64) time.Duration {
	if milliseconds == free {
		return 0
	}
	if milliseconds < 0 {
		return NoExpiry
	}
	milliseconds = min(milliseconds, math.MaxInt64/int64(time.Millisecond))
	return time.Duration(milliseconds) * time.Millisecond
}
