package transport

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/rediserr"
)

// An ACL that lacks a right for a moment must not end hand-overs until the process ends.
func TestRefusedHandOversAreTriedAgainAfterAMinuteAndReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var warnings []string
		tp := &Transport{options: Options{ToThisClient: true, ToOtherClients: true,
			Warn: func(message string, _ ...any) { warnings = append(warnings, message) }}}
		for range 3 {
			require.Equal(t, HandOvers{ThisClient: true, OtherClients: true, Counted: true}, tp.HandOvers())
			tp.Forbid(&rediserr.Error{Code: "NOPERM"}, nil)
			time.Sleep(time.Minute - time.Nanosecond)
			require.Equal(t, HandOvers{Counted: true}, tp.HandOvers())
			time.Sleep(time.Nanosecond)
		}
		require.Len(t, warnings, 1)
		require.Contains(t, warnings[0], "the ACL of this user does not allow")
		require.Contains(t, warnings[0], "tries hand-overs again every minute")
	})
}

func TestRefusalsThatAreNotAboutHandOversLeaveThem(t *testing.T) {
	t.Parallel()
	tp := &Transport{options: Options{ToThisClient: true}} // it would panic at a warning
	tp.Forbid(&rediserr.Error{Code: "NOPERM"}, errors.New("refused without a hand-over, too"))
	tp.Forbid(&rediserr.Error{Code: "TRYAGAIN"}, nil)
	tp.Forbid(errors.New("reset"), nil)
	require.True(t, tp.HandOvers().ThisClient)
}
