package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/integration/history"
)

// Report logs what was judged, and fails tb for each breach. What happened is kept then: the history, its picture, and
// the command that plays it again.
func Report(tb testing.TB, s *Scenario, seed uint64, length time.Duration, h *history.History, v history.Verdict) {
	tb.Helper()
	tb.Logf("%d acquisitions, %d faults; judged: %s; expected of servers that forget: %d", len(h.Acquisitions), len(h.Faults),
		judged(v), len(v.Expected))
	if len(v.Breaches) == 0 && !tb.Failed() {
		return
	}
	for _, b := range v.Breaches {
		tb.Errorf("%v", b)
	}
	dir, err := Keep(h, s.Name, seed)
	if err != nil {
		tb.Errorf("not everything was kept: %v", err)
	}
	tb.Logf("history and picture: %s\nagain: make chaos SECONDS=%d SEED=%d SCENARIO=%q", dir, int(max(length.Seconds(), 1)), seed, s.Name)
}

// judged is a list of how many cases each invariant was tried on.
func judged(v history.Verdict) string {
	var list []string
	for invariant, cases := range v.Judged {
		list = append(list, fmt.Sprintf("%s %d", invariant, cases))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// Keep writes the history and its picture to a directory that stays.
func Keep(h *history.History, name string, seed uint64) (string, error) {
	dir, err := os.MkdirTemp("", fmt.Sprintf("holdfast-%s-%d-", strings.ReplaceAll(name, " ", "-"), seed))
	if err != nil {
		return "", err
	}
	lines, err := os.Create(filepath.Join(dir, "history.jsonl"))
	if err != nil {
		return dir, err
	}
	defer lines.Close()
	if err := h.Encode(lines); err != nil {
		return dir, err
	}
	picture, err := os.Create(filepath.Join(dir, "history.html"))
	if err != nil {
		return dir, err
	}
	defer picture.Close()
	return dir, h.Picture(picture)
}
