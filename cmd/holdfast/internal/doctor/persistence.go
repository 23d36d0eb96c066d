package doctor

import (
	"context"
	"errors"
)

// persistence looks at which locks a restart forgets.
func persistence(ctx context.Context, n *node) []Finding {
	appending, err := n.field(ctx, "aof_enabled")
	if err != nil {
		return one(unknown(err, "that appendonly is yes and appendfsync always"))
	}
	const advice = "run CONFIG SET appendonly yes and CONFIG SET appendfsync always, or use a " +
		"RedLock on several servers. Fenced locks do not help, because Redis loses their tokens as well"
	if appending == "1" {
		switch fsync, err := n.config(ctx, "appendfsync"); {
		case err != nil:
			return one(unknown(err, "that appendfsync is always"))
		case fsync == "always":
			return one(ok("appendfsync is always, so a restart loses no locks"))
		case fsync == "everysec":
			return one(warning(advice, "appendfsync is everysec. A crash can lose the locks of the last "+
				"second, so two clients can hold the same lock"))
		default:
			return one(warning(advice, "appendfsync is %s. A crash of the machine can lose the locks "+
				"of the last 30 s, so two clients can hold the same lock", fsync))
		}
	}
	switch save, err := n.config(ctx, "save"); {
	case err != nil:
		return one(unknown(err, "that snapshots are on, because appendonly is no"))
	case save == "":
		return one(failure(advice, "persistence is off. A restart loses all locks, so two clients can "+
			"hold the same lock"))
	}
	return one(warning(advice, "only snapshots are on. A crash loses the locks since the last one, "+
		"so two clients can hold the same lock"))
}

// disk looks at whether the server can write what it wants to persist.
func disk(ctx context.Context, n *node) []Finding {
	appended, err1 := n.field(ctx, "aof_last_write_status")
	saved, err2 := n.field(ctx, "rdb_last_bgsave_status")
	rewritten, err3 := n.field(ctx, "aof_last_bgrewrite_status")
	if err := errors.Join(err1, err2, err3); err != nil {
		return one(unknown(err, "that the log of the server has no disk errors"))
	}
	const advice = "check the log of the server and the space on its disk"
	switch {
	case appended != "ok":
		return one(failure(advice, "the server cannot write the append-only file, so it rejects locks"))
	case saved != "ok":
		return one(failure(advice, "the last snapshot failed. The server rejects locks unless "+
			"stop-writes-on-bgsave-error is no"))
	case rewritten != "ok":
		return one(warning(advice, "the last rewrite of the append-only file failed, so the file grows"))
	}
	return one(ok("the last writes succeeded"))
}
