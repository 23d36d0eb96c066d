package lua

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"maps"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

//go:embed *.lua common/*.lua
var sources embed.FS

// script is one .lua file, with the common ones that it uses, and the SHA-1 by which servers know it.
type script struct {
	source string
	sha1   string
}

// uses is a line that names files of common. They stand in its place, each after those that it needs itself. A function that
// nobody calls costs as much as a command, so what is needed seldom is named where that is known.
var uses = regexp.MustCompile(`(?m)^ *-- Uses (.+)\n`)

// loaded are the sources of all scripts, by file.
var loaded = map[string]string{}

// load reads an embedded script. It panics if there is none of that name, which no released build can do.
func load(file string) *script {
	source := uses.ReplaceAllStringFunc(read(file), func(line string) string {
		var common strings.Builder
		for name := range strings.SplitSeq(uses.FindStringSubmatch(line)[1], ", ") {
			common.WriteString(read("common/" + name + ".lua"))
		}
		return common.String()
	})
	sum := sha1.Sum([]byte(source))
	s := &script{source: source, sha1: hex.EncodeToString(sum[:])}
	loaded[file] = s.source
	return s
}

func read(file string) string {
	source, err := sources.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return string(source)
}

// Scripts are the sources of all scripts as servers get them, by file. MONITOR and SLOWLOG show their SHA-1.
func Scripts() map[string]string { return maps.Clone(loaded) }

// run executes the script with EVALSHA, and once more with EVAL if the server that got it does not know it.
// All keys must be in one slot.
func (s *script) run(ctx context.Context, c rueidis.CoreClient, keys, args []string) rueidis.RedisResult {
	result := c.Do(ctx, c.B().Evalsha().Sha1(s.sha1).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	if refusal, ok := rueidis.IsRedisErr(result.Error()); ok && refusal.IsNoScript() {
		return c.Do(ctx, c.B().Eval().Script(s.source).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	}
	return result
}

// milliseconds is how the wire writes a lease. Fractions are cut off: a lease in Redis is never longer than asked for.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}

// NoExpiry is the TTL of a lock that is held but never expires. This library sets no such lock; another might.
const NoExpiry time.Duration = -1

// ttl translates a PTTL reply of an existing key. Redis knows leases that a Duration cannot hold: of those it is the
// longest.
func ttl(milliseconds int64) time.Duration {
	if milliseconds < 0 {
		return NoExpiry
	}
	return time.Duration(min(milliseconds, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
