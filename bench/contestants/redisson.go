package contestants

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast/bench/contest"
	"holdfast/bench/worker"
)

// redissonDir is the Maven project, relative to this module's directory.
const redissonDir = "../integration/redisson"

// jvm are the flags of a worker's JVM. There may be 64 of them on few cores. The compilers have
// their defaults.
var jvm = []string{
	// the default has threads for each core; a young generation is collected in 3 ms
	"-XX:+UseSerialGC",
	"-Xms64m", "-Xmx256m", "-XX:ReservedCodeCacheSize=64m",
	"-XX:-UsePerfData", // writes to a file
	"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", // each client logs that it has connected
}

// inJava is a contestant whose client is in integration/redisson, which knows it by its name.
func inJava(name, setting string) contest.Contestant {
	return contest.Contestant{Name: name, Setting: setting, Part: contest.Other, Java: true}
}

// BuildRedisson builds the worker with Redisson unless it exists, and returns its version and that
// of Java in about. Without Maven or a JDK it returns no program, and the reason in about. It must
// be called in the directory of this module.
func BuildRedisson(ctx context.Context) (_ *worker.Program, about string, err error) {
	for _, tool := range []string{"mvn", "javac", "java"} {
		if _, missing := exec.LookPath(tool); missing != nil {
			return nil, "Redisson was left out: there is no " + tool + " on PATH", nil
		}
	}
	build := exec.CommandContext(ctx, filepath.Join(redissonDir, "build.sh"))
	build.Stderr = os.Stderr
	printed, err := build.Output()
	if err != nil {
		return nil, "",
			fmt.Errorf("build Redisson: %w; see above. Without mvn on PATH it is left out", err)
	}
	classes := strings.TrimSpace(string(printed))
	return &worker.Program{Command: append(append([]string{"java"}, jvm...), "-cp", classes,
		"holdfast.bench.Worker")}, versions(ctx), nil
}

// versions returns the version of Redisson, from the name of its file, and that of Java.
func versions(ctx context.Context) string {
	redisson := "Redisson"
	if jars, err := filepath.Glob(filepath.Join(redissonDir,
		"target/lib/redisson-[0-9]*.jar")); err == nil && len(jars) > 0 {
		redisson += " " +
			strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), "redisson-"), ".jar")
	}
	says, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
	if err != nil {
		return redisson
	}
	java, _, _ := bytes.Cut(says, []byte("\n"))
	return redisson + " on " + strings.ReplaceAll(string(java), `"`, "")
}
