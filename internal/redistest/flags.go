package redistest

import (
	"flag"
	"os"
	"strconv"
)

// FixSeed makes models draw the same programs each time, so that no change fails by chance. It is
// for TestMain, before flags are read: -rapid.seed=0 and RAPID_SEED still draw others.
func FixSeed() {
	if seed := flag.Lookup("rapid.seed"); seed != nil && os.Getenv("RAPID_SEED") == "" {
		_ = seed.Value.Set("1")
	}
}

// FixChecks makes models draw as many programs as a package needs instead of 100, unless
// -rapid.checks says how many. A test that calls rapid.Check several times would draw the same
// programs each time, since the seed is the same. Like FixSeed, it is for TestMain.
func FixChecks(n int) {
	if checks := flag.Lookup("rapid.checks"); checks != nil && os.Getenv("RAPID_CHECKS") == "" {
		_ = checks.Value.Set(strconv.Itoa(n))
	}
}

// BoundParallel lowers -parallel to n, for tests that need more of the processor than others. It is
// for TestMain.
func BoundParallel(n int) {
	flag.Parse()
	parallel := flag.Lookup("test.parallel").Value
	if given, err := strconv.Atoi(parallel.String()); err == nil && given > n {
		_ = parallel.Set(strconv.Itoa(n))
	}
}
