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
		tp := &Transport{options: Options{HandsOver: true, GivesAway: true,
			Warn: func(message string, _ ...any) { warnings = append(warnings, message) }}}
		for range 3 {
			here, away := tp.HandsOver()
			require.True(t, here && away)
			tp.Forbid(&rediserr.Error{Code: "NOPERM"}, nil)
			time.Sleep(time.Minute - time.Nanosecond)
			here, away = tp.HandsOver()
			require.False(t, here || away)
			time.Sleep(time.Nanosecond)
		}
		require.Len(t, warnings, 1)
		require.Contains(t, warnings[0], "the ACL of this user does not allow")
		require.Contains(t, warnings[0], "tries hand-overs again every minute")
	})
}

func TestRefusalsThatAreNotAboutHandOversLeaveThem(t *testing.T) {
	t.Parallel()
	tp := &Transport{options: Options{HandsOver: true}} // it would panic at a warning
	tp.Forbid(&rediserr.Error{Code: "NOPERM"}, errors.New("refused without a hand-over, too"))
	tp.Forbid(&rediserr.Error{Code: "TRYAGAIN"}, nil)
	tp.Forbid(errors.New("reset"), nil)
	here, _ := tp.HandsOver()
	require.True(t, here)
}
