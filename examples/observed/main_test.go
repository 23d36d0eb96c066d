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

// service is one that runs.
type service struct {
	command *exec.Cmd
	traces  io.Reader
	address string
}

func start(t *testing.T, binary, redis string) service {
	command := exec.CommandContext(t.Context(), binary, redis, "127.0.0.1:0")
	traces, err := command.StdoutPipe()
	require.NoError(t, err)
	log, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	killed := time.AfterFunc(time.Minute, func() { _ = command.Process.Kill() })
	t.Cleanup(func() { killed.Stop() })

	line, err := bufio.NewReader(log).ReadString('\n')
	require.NoError(t, err)
	address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(line)
	require.NotNil(t, address, line)
	return service{command, traces, address[1]}
}

// end waits for the service to end, and returns its spans by name.
func (s service) end(t *testing.T) map[string]span {
	spans := make(map[string]span)
	for decoder := json.NewDecoder(s.traces); ; {
		var s span
		if err := decoder.Decode(&s); err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		spans[s.Name] = s
	}
	require.NoError(t, s.command.Wait())
	return spans
}

// run runs a service that ships an order, and returns its metrics, and its spans by name.
func run(t *testing.T, binary string) (metrics string, spans map[string]span) {
	s := start(t, binary, redistest.Start(t).Addr())
	require.Equal(t, "shipped\n", fetch(t, http.MethodPost, s.address, "/orders/4711/ship"))
	metrics = fetch(t, http.MethodGet, s.address, "/metrics")
	require.NoError(t, s.command.Process.Signal(os.Interrupt))
	return metrics, s.end(t)
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

	binary := build(t)
	metrics, spans := run(t, binary)
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

	t.Run("TerminatedItAnswersWhatItHasBegun", func(t *testing.T) {
		answersWhatItHasBegun(t, binary)
	})
}
