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

// scripts are the sources of all scripts as servers get them, by file.
var scripts = fragments.Read(sources)

// script is one .lua file with the fragments that it needs, and the SHA-1 by which servers know it.
type script struct {
	source string
	sha1   string
}

// load returns a script. It panics if there is none of that name, which no released build can do.
func load(file string) *script {
	source, known := scripts[file]
	if !known {
		panic("no script " + file)
	}
	sum := sha1.Sum([]byte(source))
	return &script{source: source, sha1: hex.EncodeToString(sum[:])}
}

// run executes the script with EVALSHA, and once more with EVAL if the server that got it does not
// know it. All keys must be in one slot.
func (s *script) run(
	ctx context.Context, c rueidis.CoreClient, keys, args []string,
) rueidis.RedisResult {
	result := c.Do(
		ctx,
		c.B().Evalsha().Sha1(s.sha1).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build(),
	)
	if refusal, ok := rueidis.IsRedisErr(result.Error()); ok && refusal.IsNoScript() {
		return c.Do(
			ctx,
			c.B().
				Eval().
				Script(s.source).
				Numkeys(int64(len(keys))).
				Key(keys...).
				Arg(args...).
				Build(),
		)
	}
	return result
}

// milliseconds is how the wire writes a lease. Fractions are cut off: a lease in Redis is never
// longer than asked for.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}

// NoExpiry is the TTL of a lock that is held but never expires. This library sets no such lock;
// another might.
const NoExpiry time.Duration = -1

// ttl translates a PTTL reply of an existing key. Redis knows leases that a Duration cannot hold:
// of those it is the longest.
func ttl(milliseconds int64) time.Duration {
	if milliseconds < 0 {
		return NoExpiry
	}
	return time.Duration(
		min(milliseconds, math.MaxInt64/int64(time.Millisecond)),
	) * time.Millisecond
}
