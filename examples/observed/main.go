// Observed is a service that shows its locks: how long requests wait for them, how long they are
// held, and whether one was lost, as metrics for Prometheus and in its traces. The lines that do
// this are marked. Without them it is the same service, with telemetry of its own only.
//
//	go run . 127.0.0.1:6379 127.0.0.1:8080
//	curl -X POST http://127.0.0.1:8080/orders/4711/ship
//	curl http://127.0.0.1:8080/metrics
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/rueidis"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	holdfastotel "holdfast/otel" // shows locks
	"holdfast/rlock"
)

func main() {
	if len(os.Args) != 3 {
		slog.Error("usage: observed REDIS LISTEN")
		os.Exit(64)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, os.Args[1], os.Args[2])
	stop()
	if err != nil {
		slog.Error("serve", "error", err)
		os.Exit(1)
	}
}

// observe sets up OpenTelemetry. The returned function sends what is left.
func observe() (flush func(context.Context) error, err error) {
	reader, err := prometheus.New()
	if err != nil {
		return nil, err
	}
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	exporter, err := stdouttrace.New()
	if err != nil {
		return nil, err
	}
	traces := trace.NewTracerProvider(trace.WithBatcher(exporter))
	otel.SetTracerProvider(traces)
	return traces.Shutdown, nil
}

// serve serves until ctx ends.
func serve(ctx context.Context, server, listen string) (err error) {
	end := context.WithoutCancel(ctx)
	flush, err := observe()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flush(end)) }()
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server}})
	if err != nil {
		return err
	}
	defer redis.Close()
	locks, err := rlock.New(redis, rlock.Options{
		Tracer: holdfastotel.New(), // shows locks
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(end)) }()

	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.Handler())
	mux.Handle("POST /orders/{id}/ship", orders{locks})
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	slog.Info("listening", "address", l.Addr().String())
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { ended <- s.Shutdown(end) })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended // requests have their locks until they are answered
}

// orders ships orders, each once at a time.
type orders struct{ locks *rlock.Client }

func (o orders) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, span := otel.Tracer("observed").Start(r.Context(), "ship")
	defer span.End()
	lock := o.locks.NewLock("order:" + r.PathValue("id"))
	err := rlock.Do(ctx, lock, time.Second, rlock.Watchdog, ship)
	if errors.Is(err, rlock.ErrNotAcquired) {
		http.Error(w, "somebody else ships this order", http.StatusConflict)
		return
	}
	if err != nil {
		span.RecordError(err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, "shipped")
}

// ship stands for work under the lock.
func ship(ctx context.Context) error {
	_, span := otel.Tracer("observed").Start(ctx, "pack")
	defer span.End()
	time.Sleep(10 * time.Millisecond)
	return nil
}
