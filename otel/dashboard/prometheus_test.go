//go:build nightly

package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/portlock"
	"holdfast/internal/redistest"
)

// prometheus is a running Prometheus, which scrapes and evaluates its rules every second.
type prometheus struct {
	address string
	client  *http.Client
}

// startPrometheus starts a Prometheus that scrapes each instance of a job at the path that is its
// name. The test's clean-up kills it.
func startPrometheus(t *testing.T, rules, address, job string, instances []string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	config := "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n" +
		"rule_files: [rules.yaml]\n" +
		"scrape_configs:\n- job_name: " + job + "\n  static_configs:\n"
	for _, instance := range instances {
		config += fmt.Sprintf("  - {targets: [%q], labels: {instance: %s, __metrics_path__: /%[2]s}}\n",
			address, instance)
	}
	for name, text := range map[string]string{"rules.yaml": rules, "prometheus.yaml": config} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	port, err := portlock.Free()
	require.NoError(t, err)
	t.Cleanup(port.Release)
	cmd := exec.Command(program(t, "prometheus"),
		"--config.file", filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", port.Addr(),
		"--log.level", "info")
	log := &startLog{ready: make(chan struct{})}
	cmd.Stderr = log
	ended, err := redistest.StartChild(cmd, func() { _ = cmd.Wait() }) // it is killed
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	p := &prometheus{port.Addr(), &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	select {
	case <-log.ready:
	case <-ended:
		require.Fail(t, "Prometheus has ended", log.String())
	case <-time.After(time.Minute):
		require.Fail(t, "Prometheus is not ready", log.String())
	}
	return p
}

// startLog keeps what Prometheus logs, and notices when it says that it is ready.
type startLog struct {
	ready chan struct{} // closed then

	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements [io.Writer].
func (l *startLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sign := []byte("Server is ready to receive web requests")
	before := bytes.Contains(l.text.Bytes(), sign)
	l.text.Write(p)
	if !before && bytes.Contains(l.text.Bytes(), sign) {
		close(l.ready)
	}
	return len(p), nil
}

func (l *startLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// get calls the API of Prometheus.
func (p *prometheus) get(t *testing.T, path string, arguments url.Values, data any) {
	t.Helper()
	response, err := p.client.PostForm("http://"+p.address+"/api/v1/"+path, arguments)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%v: %s", arguments, body)
	require.NoError(t, json.Unmarshal(body, &struct{ Data any }{data}))
}

// series is a line of a graph: points at the same distance, from the start of a range. Those that
// are missing are NaN.
type series struct {
	labels map[string]string
	points []float64
}

// timeRange is a range of time in equal steps.
type timeRange struct {
	start time.Time
	step  time.Duration
	steps int
}

// at returns the time of a step.
func (r timeRange) at(step int) time.Time { return r.start.Add(r.step * time.Duration(step)) }

// queryRange evaluates an expression at each step.
func (p *prometheus) queryRange(t *testing.T, expr string, r timeRange) []series {
	t.Helper()
	seconds := func(at time.Time) string { return fmt.Sprintf("%.3f", float64(at.UnixMilli())/1000) }
	var data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
	p.get(t, "query_range", url.Values{
		"query": {expr}, "start": {seconds(r.start)}, "step": {fmt.Sprintf("%.3f", r.step.Seconds())},
		"end": {seconds(r.at(r.steps))},
	}, &data)
	var all []series
	for _, result := range data.Result {
		s := series{labels: result.Metric, points: make([]float64, r.steps+1)}
		for i := range s.points {
			s.points[i] = math.NaN()
		}
		for _, v := range result.Values {
			at := v[0].(float64)*1000 - float64(r.start.UnixMilli())
			value, err := strconv.ParseFloat(v[1].(string), 64)
			require.NoError(t, err)
			s.points[int(math.Round(at/float64(r.step.Milliseconds())))] = value
		}
		all = append(all, s)
	}
	return all
}

// labelValues returns the values that a label has in the series of a selector.
func (p *prometheus) labelValues(t *testing.T, selector, label string) []string {
	t.Helper()
	var data []map[string]string
	p.get(t, "series", url.Values{"match[]": {selector}}, &data)
	values := map[string]bool{}
	for _, labels := range data {
		values[labels[label]] = true
	}
	return slices.Sorted(maps.Keys(values))
}
