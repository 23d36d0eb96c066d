package runner

import (
	"context"
	"fmt"
	"os"

	"holdfast/cmd/holdfast/internal/child"
	"holdfast/cmd/holdfast/internal/status"
)

// refuseOwn returns an error if the run that this one is part of holds the lock: it would wait for
// itself. Readers do not exclude each other.
func (o Options) refuseOwn(ctx context.Context, l *lock) error {
	outer := os.Getenv(child.OwnerVariable)
	if outer == "" || os.Getenv(lockVariable) != o.Name || o.Quorum {
		return nil
	}
	found, err := o.look(ctx, l)
	if err != nil {
		return nil //nolint:nilerr // the acquisition says what is wrong
	}
	for _, h := range found.Holders {
		if h.Owner == outer && (o.Kind != Read || h.Mode != "read") {
			return status.New(o.Conflict, fmt.Errorf("lock %q: not acquired, because "+
				"the holdfast run around this one holds the lock; remove one of the two", o.Name))
		}
	}
	return nil
}
