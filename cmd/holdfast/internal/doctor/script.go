package doctor

import (
	"context"
	"strings"

	"holdfast/internal/rediserr"
)

// scripts looks at whether the server runs scripts: every lock is one.
func scripts(ctx context.Context, n *node) []Finding {
	const unknownSHA = "da39a3ee5e6b4b0d3255bfef95601890afd80709" // of the empty text
	err := n.run(ctx, "EVALSHA", unknownSHA)
	if err != nil && codeOf(err) == "NOSCRIPT" {
		err = n.run(ctx, "EVAL", "return 1")
	}
	if err != nil {
		return one(failure("grant +evalsha and +eval to this user, or use a service that has scripts",
			"the server rejects scripts, and no lock works without scripts (%s)", reason(err)))
	}
	return one(ok("the server runs EVALSHA and EVAL"))
}

// run runs a script that uses no key, and returns its error. Some services refuse scripts that are
// sent without one.
func (n *node) run(ctx context.Context, command, script string, args ...string) error {
	err := n.do(ctx, append([]string{command, script, "0"}, args...)...).Error()
	if err == nil || !strings.Contains(err.Error(), "without any input keys") {
		return err
	}
	return n.do(ctx, append([]string{command, script, "1", n.lockName()}, args...)...).Error()
}

// keptFromScripts returns the first of these commands that no script may call, or "".
func (n *node) keptFromScripts(ctx context.Context, commands string) string {
	for command := range strings.FieldsSeq(strings.ToUpper(commands)) {
		// Most commands need arguments, but a refusal comes before the server looks at those.
		err := n.run(ctx, "EVAL", "return redis.call(ARGV[1])", command)
		if rediserr.HasCode(rediserr.Classify(err), rediserr.NoCommand) {
			return command
		}
	}
	return ""
}

// scriptTime looks at whether scripts may ask for the time.
func scriptTime(ctx context.Context, n *node) []Finding {
	err := n.run(ctx, "EVAL", "return redis.call('TIME')")
	if err != nil {
		return one(warning("grant +time to this user, or use no fair locks and no Epoch of a RedLock",
			"scripts may not call TIME, which fair locks, the Epoch of a RedLock, and hand-overs to "+
				"other processes need (%s)",
			reason(err)))
	}
	return one(ok("scripts may call TIME"))
}
