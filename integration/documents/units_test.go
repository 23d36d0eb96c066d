package documents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// units returns the settings of each service in deploy/systemd.
func units(t *testing.T) map[string]map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../deploy/systemd/*.service")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	setting := regexp.MustCompile(`(?m)^(\w+)=(.*)$`)
	all := make(map[string]map[string]string)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		settings := make(map[string]string)
		for _, s := range setting.FindAllStringSubmatch(string(content), -1) {
			settings[s[1]] = s[2]
		}
		all[filepath.Base(file)] = settings
	}
	return all
}

// TestNightlyServiceStopsTrying fails if the tries of a hung job do not fit into the interval in
// which systemd counts tries, because systemd would then try for ever.
func TestNightlyServiceStopsTrying(t *testing.T) {
	t.Parallel()
	unit := units(t)["nightly.service"]
	seconds := func(key string) time.Duration {
		d, err := time.ParseDuration(unit[key])
		if err != nil {
			d, err = time.ParseDuration(unit[key] + "s")
		}
		require.NoError(t, err, key)
		return d
	}
	tries, err := strconv.Atoi(unit["StartLimitBurst"])
	require.NoError(t, err)
	try := seconds("TimeoutStartSec") + seconds("TimeoutStopSec") + seconds("RestartSec")
	require.Greater(t, seconds("StartLimitIntervalSec"), time.Duration(tries)*try)
	require.Less(t, seconds("StartLimitIntervalSec"), 24*time.Hour, "the next night has its own tries")
	require.Equal(t, "64 126 127", unit["RestartPreventExitStatus"], "as in the CronJob")
}

// TestUnitsHaveFlagsOfTheProgram finds the flags of each service in the help of the program.
func TestUnitsHaveFlagsOfTheProgram(t *testing.T) {
	t.Parallel()
	program := buildProgram(t)
	for file, unit := range units(t) {
		args := strings.Fields(unit["ExecStart"])
		require.Greater(t, len(args), 2, file)
		require.Equal(t, "/usr/bin/holdfast", args[0], file)
		out, err := exec.Command(program, args[1], "--help").CombinedOutput()
		require.NoError(t, err, "%s: %s", file, out)
		for _, arg := range args[2:] {
			if arg == "--" {
				break
			}
			if strings.HasPrefix(arg, "-") {
				require.Regexp(t, regexp.QuoteMeta(arg)+`\b`, string(out), file)
			}
		}
	}
}
