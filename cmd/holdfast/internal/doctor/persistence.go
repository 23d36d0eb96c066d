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
	const advice = "CONFIG SET appendonly yes and appendfsync always, or use a RedLock on several " +
		"servers; fenced locks do not help, because Redis forgets their tokens as well"
	if appending == "1" {
		switch fsync, err := n.config(ctx, "appendfsync"); {
		case err != nil:
			return one(unknown(err, "that appendfsync is always"))
		case fsync == "always":
			return one(ok("appendfsync always; a restart forgets nothing"))
		case fsync == "everysec":
			return one(warning(advice, "appendfsync everysec; a crash may forget the locks of the last "+
				"second, and then two hold them"))
		default:
			return one(warning(advice, "appendfsync %s; a crash of the machine may forget the locks "+
				"of the last half minute, and then two hold them", fsync))
		}
	}
	switch save, err := n.config(ctx, "save"); {
	case err != nil:
		return one(unknown(err, "that appendonly is yes: it is no"))
	case save == "":
		return one(failure(advice, "none; each restart forgets all locks, and then two hold them"))
	}
	return one(warning(advice, "snapshots only; a crash forgets the locks since the last one, and "+
		"then two hold them"))
}

// disk looks at whether the server can write what it wants to persist.
func disk(ctx context.Context, n *node) []Finding {
	appended, err1 := n.field(ctx, "aof_last_write_status")
	saved, err2 := n.field(ctx, "rdb_last_bgsave_status")
	rewritten, err3 := n.field(ctx, "aof_last_bgrewrite_status")
	if err := errors.Join(err1, err2, err3); err != nil {
		return one(unknown(err, "that the server's log has no errors of its disk"))
	}
	const advice = "look at the server's log, and at the space on its disk"
	switch {
	case appended != "ok":
		return one(failure(advice, "the append-only file cannot be written; locks are refused"))
	case saved != "ok":
		return one(failure(advice, "the last snapshot failed; unless stop-writes-on-bgsave-error "+
			"is no, locks are refused"))
	case rewritten != "ok":
		return one(warning(advice, "the last rewrite of the append-only file failed; it grows"))
	}
	return one(ok("the last writes succeeded"))
}
