//go:build redis

package lua_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// A master that has become a replica may lag behind the new one, or have lost it. What it does not
// have is no reason to believe that a lock is gone.
func TestReplicaDoesNotSayThatALockIsGone(t *testing.T) {
	s, c := start(t)
	s.Do(t, "REPLICAOF", "127.0.0.1", "1") // no server listens there
	held, rw := lua.Held{Lock: lock, Owner: me}, lua.ReadWrite{Lock: lock}
	reads := lua.Held{Lock: lock, Owner: me, Read: true}
	for what, command := range map[string]func(context.Context) error{
		"renew": func(ctx context.Context) error {
			_, err := lua.Renew(ctx, c, lease, []lua.Held{held})
			return err
		},
		"renew a read lock": func(ctx context.Context) error {
			_, err := lua.Renew(ctx, c, lease, []lua.Held{reads})
			return err
		},
		"reenter": func(ctx context.Context) error {
			_, err := lua.Reenter(ctx, c, held, 2, lease)
			return err
		},
		"reenter a read lock": func(ctx context.Context) error {
			_, err := lua.Reenter(ctx, c, reads, 2, lease)
			return err
		},
		"add levels to a batch": func(ctx context.Context) error {
			_, _, err := lua.AcquireBatch(ctx, c, lease,
				[]lua.BatchPart{{Lock: lock, Owner: me, Count: 2, Nested: true}})
			return err
		},
		"attach": func(ctx context.Context) error {
			_, err := lua.Attach(ctx, c, lock, other, me, lease)
			return err
		},
		"release a level": func(ctx context.Context) error {
			_, err := unlock(ctx, c, lock, me, 1)
			return err
		},
		"release": func(ctx context.Context) error {
			_, err := unlock(ctx, c, lock, me, 0)
			return err
		},
		"release a level of a fair lock": func(ctx context.Context) error {
			_, err := fair.Release(ctx, c, 1, me)
			return err
		},
		"release a fair lock": func(ctx context.Context) error {
			_, err := fair.Release(ctx, c, 0, me)
			return err
		},
		"release a read lock": func(ctx context.Context) error {
			_, err := rw.ReleaseRead(ctx, c, me, 0)
			return err
		},
		"release a write lock": func(ctx context.Context) error {
			_, err := rw.ReleaseWrite(ctx, c, me, 0, "", 0)
			return err
		},
		"release a batch": func(ctx context.Context) error {
			got, err := lua.ReleaseBatch(ctx, c, lua.Classic, []lua.BatchPart{{Lock: lock, Owner: me}})
			if err == nil {
				err = got[0].Err
			}
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			err := command(t.Context())
			require.True(t, lua.HasCode(err, "READONLY"), "%v", err)
		})
	}
}
