package doctor

import (
	"context"
	"strings"

	"holdfast/internal/wire"
)

// rights is what a user needs for something. docs/permissions.md adds them up for each kind.
type rights struct {
	commands string
	keys     []string // what precedes the name of the lock
	channels []string
}

var (
	everyLock = rights{
		commands: "evalsha eval pttl hexists hrandfield hset hdel hlen pexpire del publish " +
			"subscribe unsubscribe ping hello client",
		keys: []string{""},
	}
	plain = rights{channels: []string{"redisson_lock__channel:"}}
	fair  = rights{
		commands: "time get set lindex lpop lrange lrem rpush zadd zrange zrem zscore",
		keys: []string{"redisson_lock_queue:", "redisson_lock_timeout:", "holdfast_lock_turn:",
			"holdfast_lock_budget:"},
		channels: plain.channels,
	}
	fenced = rights{commands: "get incr", keys: []string{"redisson_lock_token:"},
		channels: plain.channels}
	readWrite = rights{
		commands: "get set hget exists",
		keys: []string{"{", "holdfast_rwlock_writer:", "holdfast_rwlock_reader:",
			"holdfast_rwlock_turn:"},
		channels: []string{"redisson_rwlock:"},
	}
	handOver = rights{commands: "time get incr pubsub zadd zpopmin zrange zrem zscore",
		keys: []string{"holdfast_lock_waiters:"}, channels: []string{"holdfast_lock_present:"}}
)

// probes has the arguments with which a command may be sent to see whether it is refused: KEY is
// one of a lock that is tried. Those that are missing have been sent already.
var probes = map[string]string{
	"pttl": "KEY", "hexists": "KEY f", "hrandfield": "KEY 1", "hset": "KEY f 1", "hdel": "KEY f",
	"hlen": "KEY", "pexpire": "KEY 1000", "del": "KEY", "time": "", "get": "KEY",
	"set": "KEY 1 PX 1000", "lindex": "KEY 0", "lpop": "KEY", "lrange": "KEY 0 0", "lrem": "KEY 0 x",
	"rpush": "KEY x", "zadd": "KEY 1 x", "zrange": "KEY 0 0", "zrem": "KEY x", "zscore": "KEY x",
	"zpopmin": "KEY", "incr": "KEY", "hget": "KEY f", "exists": "KEY", "pubsub": "NUMSUB KEY",
}

// missing returns which of these rights the user does not have, as rules of an ACL. Servers do not
// say it of what a script did.
func (n *node) missing(ctx context.Context, all ...rights) (rules []string) {
	name := n.lockName()
	defer n.cleanUp(ctx, name)
	add := func(rule string, refused bool) {
		if refused {
			rules = append(rules, rule)
		}
	}
	publish := "PUBLISH"
	if sharded, _ := n.sharded(ctx); sharded {
		publish = "SPUBLISH"
	}
	for _, r := range all {
		for command := range strings.FieldsSeq(r.commands) {
			if words, known := probes[command]; known {
				words = command + " " + strings.ReplaceAll(words, "KEY", name)
				add("+"+command, n.refuses(ctx, "run the", strings.Fields(words)...))
			}
		}
		for _, stem := range r.keys {
			add("~"+pattern(stem, n.Prefix), n.refuses(ctx, "access", "PTTL", derived(stem, name)))
		}
		for _, stem := range r.channels {
			add("&"+pattern(stem, n.Prefix), n.refuses(ctx, "access", publish, derived(stem, name), "0"))
			add("+"+strings.ToLower(publish), n.refuses(ctx, "run the", publish, derived(stem, name), "0"))
		}
	}
	return rules
}

// refuses reports whether the user may not send a command, for a reason that contains text.
func (n *node) refuses(ctx context.Context, text string, words ...string) bool {
	err := n.do(ctx, words...).Error()
	return err != nil && codeOf(err) == "NOPERM" && strings.Contains(err.Error(), text)
}

// derived returns the key or channel that begins with stem and belongs to a lock.
func derived(stem, name string) string {
	switch stem {
	case "":
		return name
	case "{":
		return wire.Suffix(name, "any")
	}
	return wire.Prefix(strings.TrimSuffix(stem, ":"), name)
}

// pattern returns the pattern of such keys or channels for all locks whose names begin with prefix.
func pattern(stem, prefix string) string {
	if stem == "" || strings.Contains(prefix, "{") {
		return strings.TrimSuffix(stem, "{") + prefix + "*"
	}
	return strings.TrimSuffix(stem, "{") + "{" + prefix + "*"
}
