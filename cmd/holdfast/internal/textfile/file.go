// Package textfile keeps metrics of short-lived processes in a file that node_exporter's textfile
// collector reads. The names are those of package holdfast/otel, so that the same alerts work.
package textfile

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// samples are values by series, as in `name{label="value"}`.
type samples map[string]float64

// update changes the file: it adds to counters, and sets gauges. Several processes may do that at
// the same time. Readers see the file before or after.
func update(path string, add, set samples) (err error) {
	dir := filepath.Dir(path)
	unlock, err := lockDirectory(dir)
	if err != nil {
		return err
	}
	defer unlock()
	before, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	all := parse(before)
	for series, value := range add {
		all[series] += value
	}
	for series, value := range set {
		all[series] = value
	}
	// node_exporter reads *.prom only.
	file, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // unless it has been renamed
	_, err = file.Write(format(all))
	if err == nil {
		err = file.Chmod(0o644) // node_exporter is another user
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	return err
}

// parse returns what format has written. It leaves out lines that it does not understand.
func parse(text []byte) samples {
	all := samples{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		if end < 0 || strings.HasPrefix(line, "#") || familyOf(line[:end]) < 0 {
			continue
		}
		if value, err := strconv.ParseFloat(line[end+1:], 64); err == nil {
			all[line[:end]] = value
		}
	}
	return all
}

// format returns the samples as Prometheus reads them.
func format(all samples) []byte {
	byFamily := make([][]string, len(families))
	for series := range all {
		if i := familyOf(series); i >= 0 {
			byFamily[i] = append(byFamily[i], series)
		}
	}
	var b bytes.Buffer
	for i, f := range families {
		if len(byFamily[i]) == 0 {
			continue
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		slices.SortFunc(byFamily[i], inOrder)
		for _, series := range byFamily[i] {
			fmt.Fprintf(&b, "%s %s\n", series, number(all[series]))
		}
	}
	return b.Bytes()
}

// inOrder compares series of a family: those with the same labels come together, and buckets by
// their bound, which is the last label.
func inOrder(a, b string) int {
	split := func(series string) (name, labels string, bound float64) {
		name, labels, _ = strings.Cut(strings.TrimSuffix(series, "}"), "{")
		labels, le, _ := strings.Cut(labels, `,le="`)
		bound, _ = strconv.ParseFloat(strings.TrimSuffix(le, `"`), 64)
		return name, labels, bound
	}
	nameA, labelsA, boundA := split(a)
	nameB, labelsB, boundB := split(b)
	return cmp.Or(cmp.Compare(labelsA, labelsB), cmp.Compare(nameA, nameB),
		cmp.Compare(boundA, boundB))
}

// number returns a number as Prometheus reads it.
func number(value float64) string {
	if math.IsInf(value, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// family is a metric, and the bounds of its buckets if it is a histogram.
type family struct {
	name, kind, help string
	bounds           []float64
}

var (
	seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30,
		60, 120, 300}
	parts = []float64{.05, .1, .2, .3, .4, .5, .6, .7, .8, .9, .95, .99, 1}
)

// The names of the metrics.
const (
	acquireDuration = "holdfast_lock_acquire_duration_seconds"
	holdDuration    = "holdfast_lock_hold_duration_seconds"
	lost            = "holdfast_lock_lost_total"
	utilization     = "holdfast_lock_lease_utilization"
	renewalFailures = "holdfast_lock_renewal_failures_total"
	held            = "holdfast_lock_held"
	nodeFailures    = "holdfast_redlock_node_failures_total"
	roundDuration   = "holdfast_redlock_round_duration_seconds"

	runAcquired = "holdfast_run_acquired_timestamp_seconds"
	runSuccess  = "holdfast_run_success_timestamp_seconds"
	runDuration = "holdfast_run_duration_seconds"
	runStatus   = "holdfast_run_exit_status"
)

var families = []family{
	{acquireDuration, "histogram", "Duration of calls that acquire a lock.", seconds},
	{holdDuration, "histogram", "Time between the acquisition and the release of a lock.", seconds},
	{lost, "counter", "Locks lost while they were held.", nil},
	{utilization, "histogram", "Used part of the lease, at a renewal or at the end of a hold.", parts},
	{renewalFailures, "counter", "Failed renewals of a lease. Each is tried again.", nil},
	{held, "gauge", "Held locks.", nil},
	{nodeFailures, "counter", "Requests that a node of a RedLock failed to serve.", nil},
	{roundDuration, "histogram", "Duration of a round of requests to the nodes of a RedLock.",
		seconds},
	{runAcquired, "gauge", "When holdfast run last acquired the lock.", nil},
	{runSuccess, "gauge", "When the command last ended with status 0.", nil},
	{runDuration, "gauge", "How long the command last ran.", nil},
	{runStatus, "gauge", "Exit status of the last run that acquired the lock.", nil},
}

// familyOf returns the index of the family of a series, or -1.
func familyOf(series string) int {
	name, _, _ := strings.Cut(series, "{")
	return slices.IndexFunc(families, func(f family) bool {
		rest, is := strings.CutPrefix(name, f.name)
		return is && (rest == "" || len(f.bounds) > 0 &&
			slices.Contains([]string{"_bucket", "_sum", "_count"}, rest))
	})
}

// labels are pairs of a name and a value. A label without a value is left out.
type labels []string

// with returns the labels and more.
func (l labels) with(more ...string) labels { return append(slices.Clone(l), more...) }

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// series returns the series of a metric that has these labels.
func (l labels) series(metric string) string {
	var pairs []string
	for i := 0; i < len(l); i += 2 {
		if l[i+1] != "" {
			pairs = append(pairs, l[i]+`="`+escape.Replace(l[i+1])+`"`)
		}
	}
	return metric + "{" + strings.Join(pairs, ",") + "}"
}

// observe adds a measurement to a histogram.
func (s samples) observe(metric string, l labels, value float64) {
	f := families[familyOf(metric)]
	for _, bound := range append(slices.Clone(f.bounds), math.Inf(1)) {
		n := 0.
		if value <= bound {
			n = 1
		}
		s[l.with("le", number(bound)).series(metric+"_bucket")] += n
	}
	s[l.series(metric+"_sum")] += value
	s[l.series(metric+"_count")]++
}
