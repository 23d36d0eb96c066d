package rlock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/watchdog"
)

// Code that resumes after a pause may call Valid before any timer has fired, for which a closed
// watchdog stands here.
func TestValidReadsTheClockItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchdog.New(watchdog.Options{Lease: time.Minute, Renew: (&Client{}).renew})
		h := &acquisition{}
		level := &Hold{level: &level{acquisition: h}}
		w.Add(&h.lease, time.Now().Add(time.Second), false)
		w.Close()
		time.Sleep(time.Second - time.Nanosecond)
		require.True(t, level.Valid())
		time.Sleep(time.Nanosecond)
		require.False(t, level.Valid())
		require.NoError(t, level.Err(), "the level has not ended")
	})
}
