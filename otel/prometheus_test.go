package holdfastotel_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	holdfastotel "holdfast/otel"
	"holdfast/rlock"
)

// scrape returns what Prometheus reads, by the names of metrics.
func scrape(t *testing.T, registry *prometheus.Registry) map[string]*dto.MetricFamily {
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	require.NoError(t, err)
	response, err := server.Client().Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	return families
}

func TestPrometheusScrapesTheNamesThatDashboardsUse(t *testing.T) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	require.NoError(t, err)
	s := newSignals(holdfastotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	call := s.start(t.Context(), order)
	s.WaitStart(call, rlock.WaitStart{Lock: order})
	s.WaitEnd(call, rlock.WaitEnd{Lock: order})
	s.RoundEnd(call, rlock.RoundEnd{Lock: order, Took: time.Millisecond})
	_, hold := s.acquired(call, order, rlock.Granted, false)
	s.RenewalEnd(rlock.RenewalEnd{Lock: order, Err: rlock.ErrClosed, Lease: 1, Hold: hold})
	hold.HoldEnd(end(order, &rlock.LostError{Reason: rlock.ErrGone}, time.Second))
	s.NodeFailed(rlock.NodeFailed{Lock: order, Server: "a", Operation: "acquire",
		Err: rlock.ErrClosed})

	families := scrape(t, registry)
	lock := []string{"holdfast_lock_kind", "holdfast_server"}
	with := func(more ...string) []string { return append(more, lock...) }
	for name, want := range map[string]struct {
		kind   dto.MetricType
		labels []string
	}{
		"holdfast_lock_acquire_duration_seconds": {dto.MetricType_HISTOGRAM,
			with("holdfast_lock_outcome", "holdfast_lock_how")},
		"holdfast_lock_hold_duration_seconds": {dto.MetricType_HISTOGRAM,
			with("holdfast_lock_outcome", "error_type")},
		"holdfast_lock_held":                   {dto.MetricType_GAUGE, lock},
		"holdfast_lock_waiting":                {dto.MetricType_GAUGE, lock},
		"holdfast_lock_lost_total":             {dto.MetricType_COUNTER, with("error_type")},
		"holdfast_lock_renewal_failures_total": {dto.MetricType_COUNTER, with("error_type")},
		"holdfast_lock_handovers_total": {dto.MetricType_COUNTER,
			with("holdfast_handover_scope")},
		"holdfast_lock_deadline_margin_seconds": {dto.MetricType_HISTOGRAM, lock},
		"holdfast_lock_lease_utilization":       {dto.MetricType_HISTOGRAM, lock},
		"holdfast_redlock_round_duration_seconds": {dto.MetricType_HISTOGRAM,
			[]string{"holdfast_lock_outcome"}},
		"holdfast_redlock_node_failures_total": {dto.MetricType_COUNTER,
			[]string{"holdfast_server", "holdfast_redlock_operation", "error_type"}},
	} {
		family := families[name]
		require.NotNil(t, family, name)
		require.Equal(t, want.kind, family.GetType(), name)
		var labels []string
		for _, l := range family.GetMetric()[0].GetLabel() {
			if l.GetName() != "otel_scope_name" && l.GetName() != "otel_scope_version" &&
				l.GetName() != "otel_scope_schema_url" {
				labels = append(labels, l.GetName())
			}
		}
		require.ElementsMatch(t, want.labels, labels, name)
		delete(families, name)
	}
	delete(families, "target_info")
	require.Empty(t, families)
}
