// Package dashboard tests docs/monitoring: the dashboard for Grafana and the alert rules. The rules
// pass their own tests. With the tag nightly, a real Prometheus scrapes a service that uses locks
// of all kinds while things fail: then each query of the dashboard must have data, and each alert
// must have fired.
//
// It needs Prometheus and promtool, on PATH or from ensure-prometheus.sh beside this file.
package dashboard
