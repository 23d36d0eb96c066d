package textfile

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/rlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var nightly = rlock.TracedLock{Name: "nightly", Kind: "reentrant", Server: "redis:6379"}

// ran records a run of a lock in a file.
func ran(t *testing.T, path, name string, status int) {
	t.Helper()
	m := New(path, name, func(err error) { require.NoError(t, err) })
	defer m.Close()
	m.AcquireEnd(t.Context(), rlock.AcquireEnd{Lock: nightly, How: rlock.Free, Took: time.Millisecond})
	_, hold := m.HoldStart(t.Context(), rlock.HoldStart{Lock: nightly})
	m.Began()
	m.RenewalEnd(rlock.RenewalEnd{Lock: nightly, Err: errors.New("no reply"),
		Margin: 20 * time.Second, Lease: 30 * time.Second})
	m.RoundEnd(t.Context(), rlock.RoundEnd{Lock: nightly, Granted: 2, Want: 2})
	m.NodeFailed(rlock.NodeFailed{Lock: nightly, Server: "redis:1", Operation: "acquire"})
	hold.HoldEnd(rlock.HoldEnd{Lock: nightly, Last: true, Held: time.Second,
		Err:    errors.Join(rlock.ErrLost, rlock.ErrGone),
		Margin: 20 * time.Second, Lease: 30 * time.Second})
	m.Ended(status, time.Minute)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// An alert on the time of the last success would fire for a lock that is only held.
func TestOnlyALockOfARunHasATimeOfSuccess(t *testing.T) {
	t.Parallel()
	for _, runs := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "holdfast.prom")
		m := New(path, "nightly", func(err error) { t.Error(err) })
		if runs {
			m.Began()
		} else {
			m.Acquired()
		}
		m.Close()
		require.Equal(t, runs, strings.Contains(read(t, path),
			"\nholdfast_run_success_timestamp_seconds{holdfast_lock_name=\"nightly\"} 0\n"))
		require.Contains(t, read(t, path), "holdfast_run_acquired_timestamp_seconds{")
	}
}

func TestCountersGrowFromRunToRun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.prom")
	ran(t, path, "nightly", 0)
	succeeded := regexp.MustCompile(`holdfast_run_success_\w+\{holdfast_lock_name="nightly"\} .*`)
	first := succeeded.FindString(read(t, path))
	require.NotEmpty(t, first)
	ran(t, path, "nightly", 7)
	ran(t, path, "weekly \"a\\\n", 0)
	text := read(t, path)
	const lock = `holdfast_lock_kind="reentrant",holdfast_server="redis:6379",holdfast_lock_name=`
	for _, line := range []string{
		`holdfast_lock_acquire_duration_seconds_count{` + lock + `"nightly",` +
			`holdfast_lock_outcome="acquired",holdfast_lock_how="free"} 2`,
		`holdfast_lock_hold_duration_seconds_sum{` + lock + `"nightly",` +
			`holdfast_lock_outcome="lost",error_type="gone"} 2`,
		`holdfast_lock_lost_total{` + lock + `"nightly",error_type="gone"} 2`,
		`holdfast_lock_lost_total{` + lock + `"nightly",error_type="expired"} 0`,
		`holdfast_lock_renewal_failures_total{` + lock + `"nightly",error_type="_OTHER"} 2`,
		`holdfast_lock_held{` + lock + `"nightly"} 0`,
		`holdfast_run_exit_status{holdfast_lock_name="nightly"} 7`,
		`holdfast_run_duration_seconds{holdfast_lock_name="nightly"} 60`,
		`holdfast_run_exit_status{holdfast_lock_name="weekly \"a\\\\n"} 0`,
		first, // a failure is no success
	} {
		require.Contains(t, strings.Split(text, "\n"), line)
	}
	// The format wants buckets in the order of their bounds.
	require.Regexp(t, `(?s)utilization_bucket\{[^}]*,le="0.3"\} 0\n[^\n]*,le="0.4"\} 4\n.*`+
		`,le="1"\} 4\n[^\n]*,le="\+Inf"\} 4\n[^\n]*_count\{[^}]*\} 4\n[^\n]*_sum\{`, text)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm(), "another user reads it")
	others, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, others, 1)
}

func TestProcessesThatWriteAtTheSameTimeCountEverything(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.prom")
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() { ran(t, path, "nightly", 0) })
	}
	group.Wait()
	require.Regexp(t, `lost_total\{.*error_type="gone"\} 20\n`, read(t, path))
}

func TestAFileThatCannotBeWrittenIsReportedOnceAndWrittenLater(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "later")
	var warnings atomic.Int32
	warned := make(chan struct{}, 10)
	m := New(filepath.Join(dir, "a.prom"), "nightly", func(error) {
		warnings.Add(1)
		warned <- struct{}{}
	})
	m.Unreachable(nightly, errors.New("refused"), time.Second)
	<-warned
	m.Began()
	require.NoError(t, os.Mkdir(dir, 0o700))
	m.Close()
	m.Began() // a tracer may be late
	require.EqualValues(t, 1, warnings.Load())
	require.Regexp(t, `seconds_count\{.*_outcome="failed",error_type="no_connection"\} 1\n`,
		read(t, filepath.Join(dir, "a.prom")))
}

// Only the alert on waiting calls is about many callers, which a run is not.
func TestAlertsHaveTheirMetrics(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.prom")
	ran(t, path, "nightly", 0)
	text := read(t, path)
	rules := read(t, "../../../../docs/monitoring/alerts.yaml")
	names := regexp.MustCompile(`\bholdfast_(lock|redlock)_\w+(_total|_bucket|_count)\b`).
		FindAllString(rules, -1)
	require.Greater(t, len(names), 5)
	for _, name := range names {
		require.Regexp(t, `(?m)^`+name+`\{`, text)
	}
}
