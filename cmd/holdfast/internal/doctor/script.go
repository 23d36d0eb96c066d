package doctor

import (
	"context"
	"strings"

	"github.com/redis/rueidis"

	"holdfast/lua"
)

// scripts looks at whether the server runs scripts: every lock is one.
func scripts(ctx context.Context, n *node) []Finding {
	const unknownSHA = "da39a3ee5e6b4b0d3255bfef95601890afd80709" // of the empty text
	err := n.script(ctx, "EVALSHA", unknownSHA).Error()
	if err != nil && codeOf(err) == "NOSCRIPT" {
		err = n.script(ctx, "EVAL", "return 1").Error()
	}
	if err != nil {
		return one(failure("allow this user +evalsha and +eval, or use a service that has scripts",
			"no lock works without scripts, and they are refused (%s)", reason(err)))
	}
	return one(ok("EVALSHA and EVAL"))
}

// script runs a script. It names no key, which an ACL could forbid, except to a service that refuses
// scripts without keys.
func (n *node) script(ctx context.Context, command, script string, args ...string,
) rueidis.RedisResult {
	got := n.do(ctx, append([]string{command, script, "0"}, args...)...)
	if err := got.Error(); err == nil || !strings.Contains(err.Error(), "without any input keys") {
		return got
	}
	return n.do(ctx, append([]string{command, script, "1", n.lockName()}, args...)...)
}

// keptFromScripts returns the first of these commands that no script may call, or "".
func (n *node) keptFromScripts(ctx context.Context, commands string) string {
	for command := range strings.FieldsSeq(strings.ToUpper(commands)) {
		// Most commands want arguments, but what is refused is refused before that is noticed.
		err := n.script(ctx, "EVAL", "return redis.call(ARGV[1])", command).Error()
		if lua.HasCode(lua.Classify(err), lua.NoCommand) {
			return command
		}
	}
	return ""
}

// scriptTime looks at whether scripts may ask for the time.
func scriptTime(ctx context.Context, n *node) []Finding {
	err := n.script(ctx, "EVAL", "return redis.call('TIME')").Error()
	if err != nil {
		return one(warning("allow this user +time, or use no fair locks and no RedLock with Epoch",
			"scripts may not call TIME, which fair locks, Epoch and hand-overs to other processes need (%s)",
			reason(err)))
	}
	return one(ok("scripts may call TIME"))
}
