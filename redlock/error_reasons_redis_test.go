//go:build redis

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// The last of those that refuse for good replies late, when it is known already that this round
// will fail.
func TestMajorityThatRefusesForGoodEndsAWaitAtOnceWhateverTheOthersReply(t *testing.T) {
	t.Parallel()
	for why, others := range map[string]struct {
		options redlock.Options
		hold    func(t testing.TB, servers []*redistest.Server)
	}{
		"held by several": {atOnce, func(t testing.TB, servers []*redistest.Server) {
			for i, s := range servers {
				s.Do(t, "HSET", name, "somebody:"+called(i), "1")
			}
		}},
		"not counted yet": {
			redlock.Options{NodeTimeout: 3 * time.Second}, func(testing.TB, []*redistest.Server) {},
		},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			servers := startNodes(t, 5)
			clients, proxies := proxied(t, servers, rlock.Options{})
			warm(t, clients)
			others.hold(t, servers[:2])
			for _, s := range servers[2:] {
				s.Do(t, "ACL", "SETUSER", "default", "-evalsha", "-eval")
			}
			for _, p := range proxies[3:] {
				p.Delay(50 * time.Millisecond)
			}
			o := result(
				t,
				lockInBackground(t.Context(), redlock.NewOn(name, others.options, clients...),
					rlock.Watchdog),
			)
			require.ErrorIs(t, o.Err, redlock.ErrNoQuorum)
			require.NotErrorIs(t, o.Err, rlock.ErrNotAcquired)
			require.ErrorContains(t, o.Err, "NOPERM")
		})
	}
}
