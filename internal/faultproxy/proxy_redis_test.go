//go:build redis

package faultproxy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDelayOfOneDirectionSparesTheOther(t *testing.T) {
	const long = 20 * shortly
	address, got := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	p.DelayReplies(long)
	start := time.Now()
	c.say(t, "one")
	require.Equal(t, "one", heard(t, got))
	require.Less(t, time.Since(start), long)
	c.hear(t, "one")
	require.GreaterOrEqual(t, time.Since(start), long)

	p.DelayReplies(0)
	p.DelayRequests(long)
	start = time.Now()
	c.say(t, "two")
	require.Equal(t, "two", heard(t, got))
	require.GreaterOrEqual(t, time.Since(start), long)
	c.hear(t, "two")
}
