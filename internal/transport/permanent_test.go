package transport

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// modeOnly is a rueidis client with nothing but a mode.
type modeOnly struct {
	rueidis.Client
	mode rueidis.ClientMode
}

func (m modeOnly) Mode() rueidis.ClientMode { return m.mode }

func TestErrorsThatWaitingHelpsAgainst(t *testing.T) {
	t.Parallel()
	readonly := fmt.Errorf("wrapped: %w", &lua.Error{Class: lua.ClassPermanent, Code: "READONLY"})
	closing := lua.Classify(rueidis.ErrClosing)
	for _, test := range []struct {
		what      string
		mode      rueidis.ClientMode
		err       error
		permanent bool
	}{
		{"a server that was a replica from the start is a wrong address",
			rueidis.ClientModeStandalone, readonly, true},
		{"Sentinel replaces a master that became a replica", rueidis.ClientModeSentinel, readonly,
			false},
		{"so does a cluster", rueidis.ClientModeCluster, readonly, false},
		{"a closed client stays closed", rueidis.ClientModeStandalone, closing, true},
		{"Sentinel closes connections to change servers", rueidis.ClientModeSentinel, closing,
			false},
		{"a client of one server does not follow redirections", rueidis.ClientModeStandalone,
			&lua.Error{Class: lua.ClassTemporary, Code: "MOVED"}, true},
		{"a client of a cluster does", rueidis.ClientModeCluster,
			&lua.Error{Class: lua.ClassTemporary, Code: "MOVED"}, false},
		{"nobody else gets the memory", rueidis.ClientModeSentinel,
			&lua.Error{Class: lua.ClassPermanent, Code: "OOM"}, true},
		{"loading ends", rueidis.ClientModeStandalone,
			&lua.Error{Class: lua.ClassTemporary, Code: "LOADING"}, false},
		{"an outcome can be asked for again", rueidis.ClientModeStandalone, errors.New("reset"),
			false},
	} {
		c := &Transport{redis: modeOnly{mode: test.mode}}
		require.Equal(t, test.permanent, c.Permanent(test.err), test.what)
	}
	c := &Transport{redis: modeOnly{mode: rueidis.ClientModeStandalone}}
	c.Wrote()
	require.False(t, c.Permanent(readonly), "the address of a master may lead to another server")
}
