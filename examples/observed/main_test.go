package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

// mark ends the lines that show locks.
const mark = "// shows locks"

// withoutMarked returns the service without these lines, and their number.
func withoutMarked(t *testing.T) (rest string, marked int) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	for line := range strings.Lines(string(source)) {
		if strings.HasSuffix(line, mark+"\n") {
			marked++
		} else {
			rest += line
		}
	}
	return rest, marked
}

// build builds the service, without the marked lines if there is an overlay.
func build(t *testing.T, flags ...string) (binary string) {
	binary = filepath.Join(t.TempDir(), "observed")
	command := exec.CommandContext(t.Context(), "go",
		append([]string{"build", "-o", binary}, append(flags, ".")...)...)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return binary
}

// span is a line of stdouttrace.
type span struct {
	Name        string
	SpanContext struct{ TraceID, SpanID string }
	Parent      struct{ SpanID string }
}

// run runs a service that ships an order, and returns its metrics, and its spans by name.
func run(t *testing.T, binary string) (metrics string, spans map[string]span) {
	service := exec.CommandContext(t.Context(), binary, redistest.Start(t).Addr(), "127.0.0.1:0")
	traces, err := service.StdoutPipe()
	require.NoError(t, err)
	log, err := service.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, service.Start())
	killed := time.AfterFunc(time.Minute, func() { _ = service.Process.Kill() })
	t.Cleanup(func() { killed.Stop() })

	line, err := bufio.NewReader(log).ReadString('\n')
	require.NoError(t, err)
	address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(line)
	require.NotNil(t, address, line)
	require.Equal(t, "shipped\n", fetch(t, http.MethodPost, address[1], "/orders/4711/ship"))
	metrics = fetch(t, http.MethodGet, address[1], "/metrics")
	require.NoError(t, service.Process.Signal(os.Interrupt))

	spans = make(map[string]span)
	for decoder := json.NewDecoder(traces); ; {
		var s span
		if err := decoder.Decode(&s); err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		spans[s.Name] = s
	}
	require.NoError(t, service.Wait())
	return metrics, spans
}

func fetch(t *testing.T, method, address, path string) string {
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path,
		http.NoBody)
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", body)
	return string(body)
}

func TestFewLinesShowTheLocksOfAService(t *testing.T) {
	t.Parallel()
	rest, marked := withoutMarked(t)
	require.Positive(t, marked)
	require.LessOrEqual(t, marked, 5)
	lines := strings.Count(rest, "\n")
	require.Greater(t, lines, 80)
	require.Less(t, lines, 140)

	source, err := filepath.Abs("main.go")
	require.NoError(t, err)
	without := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(without, []byte(rest), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: without}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	build(t, "-overlay", file) // it is a service without them, too

	metrics, spans := run(t, build(t))
	for _, want := range []string{
		`holdfast_lock_acquire_duration_seconds_count{.*holdfast_lock_how="free".*} 1`,
		`holdfast_lock_hold_duration_seconds_count{.*holdfast_lock_outcome="released".*} 1`,
		`holdfast_lock_held{.*} 0`,
		`holdfast_lock_waiting{.*} 0`,
	} {
		require.Regexp(t, want, metrics)
	}
	ship := spans["ship"]
	require.NotEmpty(t, ship.SpanContext.SpanID)
	require.Equal(t, ship.SpanContext.SpanID, spans["lock acquire"].Parent.SpanID)
	require.Equal(t, ship.SpanContext.SpanID, spans["lock hold"].Parent.SpanID)
	require.Equal(t, spans["lock hold"].SpanContext.SpanID, spans["pack"].Parent.SpanID)
}
