package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/integration/history"
)

// Report logs what was judged, and fails tb for each breach. In that case it keeps the history, its
// picture, and the command that plays it again.
func Report(tb testing.TB, s *Scenario, seed uint64, length time.Duration, h *history.History,
	v history.Verdict) {
	tb.Helper()
	report(tb, s, seed, repeatCommand(s, seed, length), h, v)
}

// ReportVirtual is Report for a scenario that was played in virtual time.
func ReportVirtual(tb testing.TB, s *Scenario, seed uint64, length time.Duration,
	h *history.History, v history.Verdict) {
	tb.Helper()
	report(tb, s, seed, fmt.Sprintf("again, with luck: HOLDFAST_CHAOS_HANDOVER=%s "+
		"HOLDFAST_CHAOS_TIME=%v HOLDFAST_CHAOS_SEED=%d HOLDFAST_CHAOS_SCENARIO=%q "+
		"go test ./integration/chaos -run InVirtualTime", cmp.Or(s.HandOver, ToAll), length, seed,
		s.Name), h, v)
}

func report(tb testing.TB, s *Scenario, seed uint64, again string, h *history.History,
	v history.Verdict) {
	tb.Helper()
	tb.Logf("%d acquisitions, %d faults; judged: %s; expected of servers that forget: %d",
		len(h.Acquisitions), len(h.Faults), judged(v), len(v.Expected))
	if len(v.Breaches) == 0 && !tb.Failed() {
		return
	}
	const most = 20
	for i, b := range v.Breaches {
		if i == most {
			tb.Errorf("and %d more", len(v.Breaches)-most)
			break
		}
		tb.Errorf("%v after the start: %v", b.At.Sub(h.Start).Round(time.Millisecond), b)
	}
	dir, err := keep(h, s.Name, seed)
	if err != nil {
		tb.Errorf("not everything was kept: %v", err)
	}
	tb.Logf("history and picture: %s\n%s", dir, again)
}

// repeatCommand returns the command that plays a run again.
func repeatCommand(s *Scenario, seed uint64, length time.Duration) string {
	return fmt.Sprintf("again: HOLDFAST_CHAOS_HANDOVER=%s make chaos "+
		"SECONDS=%d SEED=%d SCENARIO=%q",
		cmp.Or(s.HandOver, ToAll), int(max(length.Seconds(), 1)), seed, s.Name)
}

// keepEvents keeps the events of a run that failed before it could be judged.
func keepEvents(tb testing.TB, s *Scenario, seed uint64, length time.Duration,
	events []history.Event) {
	tb.Helper()
	dir, err := directory(s.Name, seed)
	if err == nil {
		err = write(filepath.Join(dir, "history.jsonl"), (&history.History{Events: events}).Encode)
	}
	tb.Logf("the run has failed; events: %s (%v)\n%s", dir, err, repeatCommand(s, seed, length))
}

// judged lists in how many cases each invariant was checked.
func judged(v history.Verdict) string {
	var list []string
	for invariant, cases := range v.Judged {
		list = append(list, fmt.Sprintf("%s %d", invariant, cases))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// keep writes the history and its picture to a directory that stays.
func keep(h *history.History, name string, seed uint64) (string, error) {
	dir, err := directory(name, seed)
	if err != nil {
		return "", err
	}
	return dir, errors.Join(write(filepath.Join(dir, "history.jsonl"), h.Encode),
		write(filepath.Join(dir, "history.html"), h.Picture))
}

func directory(name string, seed uint64) (string, error) {
	return os.MkdirTemp("",
		fmt.Sprintf("holdfast-%s-%d-", strings.ReplaceAll(name, " ", "-"), seed))
}

// write writes a file.
func write(path string, content func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(content(file), file.Close())
}
