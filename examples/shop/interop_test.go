//go:build interop

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

// classPath is the environment variable with the class path of the shop in Java.
const classPath = "HOLDFAST_SHOP_CLASSPATH"

// startJava starts the shop in Java, with Redisson and Lock4j. It ends with the test.
func startJava(t *testing.T, args ...string) (io.Writer, *bufio.Reader) {
	t.Helper()
	path := os.Getenv(classPath)
	require.NotEmpty(t, path, "%s is not set: run make interop, or set it to what "+
		"integration/redisson/build.sh examples/shop/java prints", classPath)
	cmd := exec.CommandContext(t.Context(), "java", append([]string{
		"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", path, "holdfast.shop.Main",
	}, args...)...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // it has ended, or t.Context has killed it
	return stdin, bufio.NewReader(stdout)
}

// readReport reads what a shop prints until it ends.
func readReport(t *testing.T, from io.Reader) report {
	t.Helper()
	r := make(report)
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		name, count, found := strings.Cut(lines.Text(), " ")
		require.True(t, found, "not a line of a report: %q", lines.Text())
		n, err := strconv.Atoi(count)
		require.NoError(t, err)
		r[name] = n
	}
	require.NoError(t, lines.Err())
	return r
}

// All counts come out right only if both services keep each other out of every section.
func TestShopsInGoAndJavaWorkOnTheSameStock(t *testing.T) {
	const workers, rounds, each = 3, 50, 70
	redis := redistest.Start(t)
	for _, sku := range skus {
		redis.Do(t, "SET", "stock:"+sku, strconv.Itoa(each))
	}
	get := func(key string) int { return int(redis.DoInt(t, "INCRBY", key, "0")) }

	args := []string{redis.Addr(), strconv.Itoa(workers), strconv.Itoa(rounds)}
	inJava, fromJava := startJava(t, args...)
	shop := locktest.StartProcess(t, "shop", args...)
	ready, err := fromJava.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", ready)
	require.Equal(t, "ready", shop.Line(t))

	// Both begin at once.
	_, err = fmt.Fprintln(inJava)
	require.NoError(t, err)
	shop.Tell(t, "")
	java, here := readReport(t, fromJava), readReport(t, shop.Stdout)
	shop.Wait(t)
	t.Logf("in Go %v, in Java %v", here, java)

	var stock, sold int
	for _, sku := range skus {
		left := get("stock:" + sku)
		require.GreaterOrEqual(t, left, 0, "more of %s was sold than there was", sku)
		stock += left
		sold += get("sold:" + sku)
	}
	require.Equal(t, each*len(skus), stock+sold, "articles were lost or made")
	require.Equal(t, here["reserved"]+java["reserved"], sold, "reservations were lost")
	require.Positive(t, here["reserved"])
	require.Positive(t, java["reserved"])

	require.Equal(t, 2*workers*rounds/raisesANight, here["nights"]+java["nights"],
		"a night was not closed once")
	require.Zero(t, here["inconsistent"]+java["inconsistent"], "readers saw half of a price")
	require.Equal(t, 2*workers*rounds, get("price:net"), "a new price was lost")
	require.Equal(t, 2*workers*rounds, get("points:ada"), "points were lost")
}
