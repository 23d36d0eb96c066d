//go:build interop

package redisson_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/doctable"
)

const (
	besideBegin = "<!-- table: written by TestTablesOfReleasesAreTrue -->\n"
	besideEnd   = "<!-- end of table -->\n"
	faultsBegin = "<!-- faults: written by TestTablesOfReleasesAreTrue -->\n"
	faultsEnd   = "<!-- end of faults -->\n"
)

// The cells of the table. On all topologies of these tests they are the same.
const (
	works     = "works"
	delayed   = "works with a delay"
	unmatched = "does not exist there"
)

// columns has the kinds of the table with their titles.
var columns = []struct {
	title string
	kinds []string
}{
	{"plain, fair", []string{reentrant, fair}},
	{"read-write", []string{read, write}},
	{"MultiLock, RedLock", []string{multi, red}},
	{"fenced", []string{fenced}},
	{"non-reentrant", []string{nonReentrant, nonReentrantFair}},
	{"spin", []string{spin}},
}

// cell returns what is promised of a kind beside a release.
func (r release) cell(kind string) string {
	switch {
	case !r.has(kind):
		return unmatched
	case kind == spin:
		return delayed
	}
	return works
}

// releases returns those of the matrix.
func releases(t testing.TB) (all []release) {
	t.Helper()
	file, err := os.Open("releases.txt")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var r release
		if _, err := fmt.Sscanf(lines.Text(), "%d.%d.%d", &r.major, &r.minor, &r.patch); err == nil {
			all = append(all, r)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// The table says which kinds this library promises beside which release. Each run proves the row of
// its release: TestLocksOfRedissonAndOfHoldfast that what works does, on a single node and on a
// cluster, and this test the rest.
func TestTablesOfReleasesAreTrue(t *testing.T) {
	t.Parallel()
	all := releases(t)
	require.Contains(t, all, beside)
	s := newSingle(t, startPeer(t))
	for _, c := range columns {
		for _, kind := range c.kinds {
			if beside.cell(kind) == works {
				continue
			}
			l, thread := both(kind).hold, newThread(s.java, s.clients)
			monitor := s.nodes[0].Monitor(t)
			err := thread.tryLock(l, 0, longLease)
			if beside.cell(kind) == unmatched {
				require.ErrorContains(t, err, "has no "+kind+" lock")
				continue
			}
			require.NoError(t, err)
			unlock(t, thread, l)
			s.requireFree(t, l)
			for _, command := range monitor.CommandsOfScripts(t) {
				require.NotContains(t, command[0], "publish", "the release is announced")
			}
		}
	}

	const command = "make test-interop TESTFLAGS='-run TestTablesOfReleases'"
	doctable.Require(t, "../../docs/porting.md", besideBegin, besideEnd, table(all), command)
	doctable.Require(t, "../../docs/redisson.md", faultsBegin, faultsEnd, faultsTable(), command)
}

// table has a row for each range of releases that are alike.
func table(all []release) string {
	var b strings.Builder
	b.WriteString("| beside Redisson |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.title)
	}
	b.WriteString("\n|" + strings.Repeat("---|", 1+len(columns)) + "\n")
	row := func(r release) (cells string) {
		for _, c := range columns {
			cells += " " + r.cell(c.kinds[0]) + " |"
		}
		return cells
	}
	for len(all) > 0 {
		alike := slices.IndexFunc(all, func(r release) bool { return row(r) != row(all[0]) })
		if alike < 0 {
			alike = len(all)
		}
		title := make([]string, alike)
		for i, r := range all[:alike] {
			title[i] = r.String()
		}
		fmt.Fprintf(&b, "| %s |%s\n", strings.Join(title, ", "), row(all[0]))
		all = all[alike:]
	}
	return b.String()
}

// faultsTable has a row for each fault of Redisson.
func faultsTable() string {
	var b strings.Builder
	b.WriteString("| Redisson | what it does |\n|---|---|\n")
	for _, f := range faults {
		fmt.Fprintf(&b, "| %s | %s |\n", f.releases(), f.what)
	}
	return b.String()
}

// releases says which releases have the fault.
func (f *fault) releases() string {
	none := release{}
	switch {
	case f.from == none && f.fixed == none:
		return "all releases"
	case f.from == none:
		return fmt.Sprint("before ", f.fixed)
	case f.fixed == none:
		return fmt.Sprint(f.from, " and later")
	}
	return fmt.Sprint("from ", f.from, ", before ", f.fixed)
}
