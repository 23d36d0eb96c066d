package redistest

import (
	"flag"
	"os"
)

// FixSeed makes models draw the same programs each time, so that no change fails by chance. It is for
// TestMain, before flags are read: -rapid.seed=0 and RAPID_SEED still draw others.
func FixSeed() {
	if seed := flag.Lookup("rapid.seed"); seed != nil && os.Getenv("RAPID_SEED") == "" {
		_ = seed.Value.Set("1")
	}
}
