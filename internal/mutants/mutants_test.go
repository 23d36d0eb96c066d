package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const source = `package p

func f(a, b int) {
	if a < b {
		g()
	}
	g()
}
`

// candidate returns a mutant of source, of the kind and with the original lines.
func candidate(t *testing.T, kind, with, text string, occurrence int) *mutant {
	t.Helper()
	start := -1
	for range occurrence {
		next := strings.Index(source[start+1:], text)
		require.GreaterOrEqual(t, next, 0)
		start += 1 + next
	}
	m := change("p/p.go", source, kind, start, start+len(text), with)
	require.NotNil(t, m)
	return m
}

func TestMutantIsWrittenAndReadAsALine(t *testing.T) {
	for _, m := range []*mutant{
		candidate(t, "comparison", "<=", "<", 1),
		candidate(t, "removed statement", "", "g()", 2),
		candidate(t, "condition", "!(a < b)", "a < b", 1),
		candidate(t, "removed body", "", "g()\n\t}\n\tg()", 1),
	} {
		read, err := parseMutant(m.String())
		require.NoError(t, err)
		require.Equal(t, m, read)
	}
}

func TestMutantIsFoundAgainWhenItsLineHasMoved(t *testing.T) {
	m := candidate(t, "removed statement", "", "g()", 2)
	require.Equal(t, 7, m.line)
	require.Equal(t, 2, m.nth)

	moved := strings.Replace(source, "func", "// new\n\nfunc", 1)
	moved = strings.Replace(moved, "\tg()\n}", "\t\tg()\n}", 1)
	changed, found := m.mutate(moved)
	require.True(t, found)
	require.Equal(t, strings.Replace(moved, "\t\tg()\n}", "\n}", 1), changed)

	_, found = m.mutate(strings.Replace(source, "\tg()\n}", "\th()\n}", 1))
	require.False(t, found, "the original line is gone")
}

func TestMutantIsAppliedAndRestored(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "p", "p.go")
	m := candidate(t, "comparison", "<=", "<", 1)
	restore, err := m.apply(root)
	require.NoError(t, err)
	require.Nil(t, restore, "the file is gone")

	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	restore, err = m.apply(root)
	require.NoError(t, err)
	changed, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(source, "\tif a < b {", "if a <= b {", 1), string(changed))

	require.NoError(t, restore())
	restored, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, source, string(restored))
}

// Whoever changes one of these lines need not care about the sample, so this does not require that
// all mutants are found.
func TestSampleIsReadable(t *testing.T) {
	sample, err := readSample("sample.txt")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(sample), 250)
	inLua := 0
	for i, m := range sample {
		require.Equal(t, i+1, m.number)
		require.Contains(t, library, m.pkg())
		require.Contains(t, kinds, m.kind)
		require.NotEqual(t, m.original, m.mutated)
		if m.isLua() {
			inLua++
		}
	}
	require.GreaterOrEqual(t, inLua, 60)
}

func TestSelectionOfALineOfLua(t *testing.T) {
	found := luaCandidates("lua/a.lua", strings.Join([]string{
		"local a = redis.call('GET', KEYS[1])",
		"if a == '1' and b then return a end",
		"redis.call('DEL', KEYS[1]) -- needed",
		"-- if a == b then",
	}, "\n")+"\n")
	var got []string
	for _, m := range found {
		got = append(got, m.kind+": "+strings.Join(m.mutated, ""))
	}
	require.Equal(t, []string{
		"condition: if not (a == '1' and b) then return a end",
		"comparison: if a ~= '1' and b then return a end",
		"logical: if a == '1' or b then return a end",
		"removed statement: ",
	}, got)
}

func TestComparisonFailsIfFewerAreKilled(t *testing.T) {
	a, b := candidate(t, "comparison", "<=", "<", 1), candidate(t, "removed statement", "", "g()", 1)
	a.number, b.number = 1, 2
	sample := []*mutant{a, b}
	results := func(outcomes ...string) map[int]*result {
		all := map[int]*result{}
		for i, outcome := range outcomes {
			all[i+1] = &result{number: i + 1, outcome: outcome, stage: "own", note: "p TestF"}
		}
		return all
	}
	var out bytes.Buffer
	require.NoError(t, compareResults(&out, sample, results("killed", "survived"),
		results("survived", "timeout")))
	require.Contains(t, out.String(), "survived now, was killed by p TestF:\n\t"+a.String())
	require.Error(t, compareResults(&out, sample, results("killed", "killed"),
		results("killed", "gone")))
	require.NoError(t, compareResults(&out, sample, results("killed", "killed"), results("killed")),
		"only those count that have a result now")
}

func TestResultsAreKeptSorted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.txt")
	first := &result{2, "killed", "own", 3, "p TestF"}
	second := &result{1, "survived", "-", 4, "1 of 1 tests"}
	require.NoError(t, appendResult(file, first))
	require.NoError(t, appendResult(file, second))
	read, err := readResults(file)
	require.NoError(t, err)
	require.Equal(t, map[int]*result{1: second, 2: first}, read)
	require.NoError(t, sortResults(file, read))
	lines, err := readLines(file)
	require.NoError(t, err)
	require.Equal(t, []string{second.String(), first.String()}, lines)
}

func TestPlanRunsTheQuickestTestsThatReachAMutant(t *testing.T) {
	m := candidate(t, "comparison", "<=", "<", 1)
	m.number = 1
	r := &runner{packages: []string{"p", "q"}, most: 10, coverage: map[string]*coverage{
		"": {Tests: []*test{
			{"p", "TestSlow", 6, []int{1}}, {"p", "TestQuick", 1, []int{1}},
			{"p", "TestSlowest", 8, []int{1}}, {"p", "TestOther", 1, []int{2}},
			{"q", "TestUser", 2, []int{1}},
		}},
		"redis": {Tests: []*test{
			{"p", "TestQuick", 1, []int{1}}, {"p", "TestSlow", 9, []int{1}},
			{"p", "TestReal", 5, []int{1}},
		}},
	}}
	names := func(batches []batch) (all []string) {
		for _, b := range batches {
			all = append(all, strings.Join(b.tests, " "))
		}
		return all
	}
	batches, reach := r.plan(m, true, "")
	require.Equal(t, 3, reach)
	require.Equal(t, []string{"TestQuick", "TestSlow"}, names(batches))

	batches, reach = r.plan(m, false, "")
	require.Equal(t, 1, reach)
	require.Equal(t, []string{"TestUser"}, names(batches))

	batches, _ = r.plan(m, true, "redis")
	got := strings.Fields(strings.Join(names(batches), " "))
	slices.Sort(got)
	require.Equal(t, []string{"TestQuick", "TestReal"}, got,
		"first those that have not been run without the tag")
}

func TestProfileTellsWhichMutantsATestReaches(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profile")
	require.NoError(t, os.WriteFile(file, []byte(`mode: set
holdfast/p/p.go:3.20,4.12 2 1
holdfast/p/p.go:4.12,6.3 1 0
`), 0o600))
	known := map[int]bool{}
	places := map[string][]place{"p/p.go": {{1, 4, 4}, {2, 5, 5}, {3, 9, 9}}}
	require.Equal(t, []int{1}, readProfile(file, "holdfast", places, known))
	require.Equal(t, map[int]bool{1: true, 2: true}, known, "the third belongs to no function")
}
