package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurationsHaveSignificantDigitsOnly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                       "0 s",
		949 * time.Microsecond:  "0.9 ms",
		9949 * time.Microsecond: "9.9 ms",
		9950 * time.Microsecond: "10 ms",
		99 * ms:                 "99 ms",
		100 * ms:                "0.1 s",
		912 * ms:                "0.91 s",
		996 * ms:                "1 s",
		1500 * ms:               "1.5 s",
		9994 * ms:               "9.99 s",
		28_461 * ms:             "28.5 s",
		30_000 * ms:             "30 s",
	} {
		require.Equal(t, want, brief(d), "%v", d)
	}
}
