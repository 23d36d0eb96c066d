package integration

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// recorder is a test that records how it would have failed. All else, such as clean-up, is that of
// the real one.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Errorf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

func (r *recorder) FailNow() { runtime.Goexit() }

// failure returns how a test that does this fails, or "".
func failure(t *testing.T, do func(tb testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(r)
	}()
	<-done
	return r.failure
}

func TestUnsupportedOperationOfATopologyFailsTheTestAndSaysSo(t *testing.T) {
	t.Parallel()
	single, replicated, masters := Start(t, Single), Start(t, Replicated), Start(t, Masters(2))
	require.Contains(t, failure(t, func(tb testing.TB) { single.MoveSlot(tb, "k") }),
		"single cannot move a slot")
	require.Contains(t, failure(t, func(tb testing.TB) { single.Failover(tb, "k") }),
		"single cannot fail over")
	require.Contains(t, failure(t, func(tb testing.TB) { replicated.Failover(tb, "k") }),
		"replicated cannot fail over")
	require.Contains(t, failure(t, func(tb testing.TB) { masters.Home(tb, "k") }),
		"masters-2 cannot tell")
	require.Contains(t, failure(t, func(tb testing.TB) { masters.Client(tb) }),
		"masters-2 cannot have one client")
	require.Empty(t, failure(t, func(tb testing.TB) { single.Home(tb, "k") }))
}

func TestVariantsMatchTheirNames(t *testing.T) {
	t.Parallel()
	plain := func(servers *Servers) error {
		client, err := rueidis.NewClient(
			rueidis.ClientOption{InitAddress: []string{servers.All()[0].Addr()}})
		if err == nil {
			client.Close()
		}
		return err
	}
	require.NoError(t, plain(Start(t, Single)))
	require.ErrorContains(t, plain(Start(t, Single, Password)), "NOAUTH")
	require.Error(t, plain(Start(t, Single, TLS)))
	both := Start(t, Single, User, TLS, Args("--maxmemory", "3mb"))
	require.Error(t, plain(both))
	client := both.Client(t)
	user, err := client.Do(t.Context(), client.B().AclWhoami().Build()).ToString()
	require.NoError(t, err)
	require.Equal(t, UserName, user)
	require.ErrorContains(t,
		client.Do(t.Context(), client.B().Arbitrary("CONFIG", "GET", "save").Build()).Error(),
		"NOPERM")
	require.Equal(t, "3145728", both.All()[0].DoMap(t, "CONFIG", "GET", "maxmemory")["maxmemory"])
	require.Equal(t, "yes",
		Start(t, Single, AppendOnly).All()[0].DoMap(t, "CONFIG", "GET", "appendonly")["appendonly"])
}
