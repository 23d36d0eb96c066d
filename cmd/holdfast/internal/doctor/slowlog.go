package doctor

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// slow is a command that took long.
type slow struct {
	began time.Time // on the server's clock
	took  time.Duration
	name  string // in upper case
}

// longestCommand is how long a command that is no script may take.
const longestCommand = time.Second

// recent is how old an entry may be. Redis keeps the last 128, however old, until it restarts.
const recent = time.Hour

// slowlog looks for commands that kept all others waiting lately, above all scripts.
func slowlog(ctx context.Context, n *node) []Finding {
	entries, err := n.do(ctx, "SLOWLOG", "GET", "128").ToArray()
	if err != nil {
		return one(unknown(err, "that SLOWLOG GET lists no scripts"))
	}
	now := time.Now()
	words, err := n.do(ctx, "TIME").AsStrSlice()
	if err == nil {
		if at, err := parseTime(words); err == nil {
			now = at
		}
	}
	var script, other slow
	scripts := 0
	for _, entry := range entries {
		s, err := parseSlow(entry)
		if err != nil {
			return one(unknown(err, "that SLOWLOG GET lists no scripts"))
		}
		if now.Sub(s.began) > recent {
			continue
		}
		if strings.HasPrefix(s.name, "EVAL") || strings.HasPrefix(s.name, "FCALL") {
			scripts++
			script.took = max(script.took, s.took)
		} else if s.took > other.took {
			other = s
		}
	}
	const advice = "while such a command runs, Redis serves nothing else, not even the renewal of a " +
		"lock. Find it with SLOWLOG GET"
	switch {
	case other.took >= longestCommand:
		return one(warning(advice, "%s took %v in the last hour", other.name,
			other.took.Round(time.Millisecond)))
	case scripts > 0:
		return one(warning(advice, "%d slow scripts in the last hour, the longest %v", scripts,
			script.took.Round(10*time.Microsecond)))
	}
	return one(ok("no slow scripts in the last hour"))
}

// parseSlow reads an entry: id, time, microseconds, words, and more.
func parseSlow(entry rueidis.RedisMessage) (s slow, err error) {
	fields, err := entry.ToArray()
	if err != nil || len(fields) < 4 {
		return s, errors.Join(err, errors.New("unexpected reply to SLOWLOG"))
	}
	began, err0 := fields[1].ToInt64()
	micros, err1 := fields[2].ToInt64()
	words, err2 := fields[3].AsStrSlice()
	if err := errors.Join(err0, err1, err2); err != nil || len(words) == 0 {
		return s, errors.Join(err, errors.New("unexpected reply to SLOWLOG"))
	}
	took := time.Duration(micros) * time.Microsecond
	return slow{time.Unix(began, 0), took, strings.ToUpper(words[0])}, nil
}
