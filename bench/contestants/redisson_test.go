//go:build interop

package contestants_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/bench/contestants"
	"holdfast/bench/measure"
	"holdfast/bench/worker"
)

func TestJavaUsesTheClockAndTheHistogramOfThisProgram(t *testing.T) {
	t.Chdir("..")
	program, about, err := contestants.BuildRedisson(t.Context())
	require.NoError(t, err)
	require.NotNil(t, program, about)
	p, err := worker.Start(worker.AnyCore, program)
	require.NoError(t, err)
	defer p.Stop()

	before := measure.Now()
	at, err := worker.Call[time.Duration](t.Context(), p, "clock", struct{}{})
	require.NoError(t, err)
	after := measure.Now()
	// Go adds the time since the start, which may differ a little.
	require.Greater(t, at, before-time.Millisecond)
	require.Less(t, at, after+time.Millisecond)

	random := rand.New(rand.NewPCG(1, 2))
	recorded := []time.Duration{-1, 0, 255, 256, 511, 512, time.Hour}
	for range 2000 {
		recorded = append(recorded, time.Duration(math.Exp(random.Float64()*30)))
	}
	var h measure.Histogram
	for _, d := range recorded {
		h.Record(d)
	}
	bars, err := worker.Call[measure.Bars](t.Context(), p, "bars", map[string]any{"of": recorded})
	require.NoError(t, err)
	require.Equal(t, h.Bars(), bars)
}
