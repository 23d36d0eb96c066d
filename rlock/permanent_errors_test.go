package rlock

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// modeOnly is a rueidis client of which only the mode matters.
type modeOnly struct {
	rueidis.Client
	mode rueidis.ClientMode
}

func (m modeOnly) Mode() rueidis.ClientMode { return m.mode }

func TestWhatWaitingHelpsAgainst(t *testing.T) {
	t.Parallel()
	readonly := fmt.Errorf("wrapped: %w", &lua.Error{Class: lua.Permanent, Code: "READONLY"})
	closing := lua.Classify(rueidis.ErrClosing)
	for _, test := range []struct {
		what       string
		mode       rueidis.ClientMode
		err        error
		isHopeless bool
	}{
		{"a single replica stays one", rueidis.ClientModeStandalone, readonly, true},
		{"Sentinel replaces a master that became a replica", rueidis.ClientModeSentinel, readonly, false},
		{"so does a cluster", rueidis.ClientModeCluster, readonly, false},
		{"a closed client stays closed", rueidis.ClientModeStandalone, closing, true},
		{"Sentinel closes connections to change servers", rueidis.ClientModeSentinel, closing, false},
		{"nobody else gets the memory", rueidis.ClientModeSentinel, &lua.Error{Class: lua.Permanent, Code: "OOM"}, true},
		{"loading ends", rueidis.ClientModeStandalone, &lua.Error{Class: lua.Temporary, Code: "LOADING"}, false},
		{"an outcome can be asked for again", rueidis.ClientModeStandalone, errors.New("reset"), false},
	} {
		c := &Client{redis: modeOnly{mode: test.mode}}
		require.Equal(t, test.isHopeless, c.hopeless(test.err), test.what)
	}
}
