// Package dashboard tests docs/monitoring: the dashboard for Grafana and the alert rules. A real
// Prometheus scrapes a service that uses locks of all kinds while things fail. Then each query of
// the dashboard must have data, and each alert must have fired.
//
// It needs Prometheus and promtool, on PATH or from ensure-prometheus.sh beside this file. These
// environment variables change what the test does:
//
//	HOLDFAST_DASHBOARD_TIME  how long the load runs at least, such as 10m; defaults to 75s
//	HOLDFAST_PICTURES        the directory to draw faults.svg into, from the series of the run
package dashboard
