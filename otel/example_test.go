package holdfastotel_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	holdfastotel "holdfast/otel"
	"holdfast/rlock"
)

// connect stands for a program's connection to Redis. Here the server is inside the program.
func connect() (redis rueidis.Client, disconnect func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	redis, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()},
		AlwaysRESP2: true, DisableCache: true})
	if err != nil {
		panic(err)
	}
	return redis, func() {
		redis.Close()
		server.Close()
	}
}

func ExampleNew() {
	// What a service has anyway, though rather with a reader of package exporters/prometheus.
	reader := metric.NewManualReader()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))

	redis, disconnect := connect()
	defer disconnect()
	locks, err := rlock.New(redis, rlock.Options{Tracer: holdfastotel.New()})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer locks.Close(ctx)

	hold, err := locks.NewLock("order:4711").Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	defer hold.Unlock()

	var read metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &read); err != nil {
		panic(err)
	}
	for _, m := range read.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name)
	}
	// Output:
	// holdfast.lock.held
	// holdfast.lock.waiting
	// holdfast.lock.acquire.duration
	// holdfast.lock.lost
}

func ExampleWithNameFunc() {
	// Of "order:4711" metrics have "order", and so one series for all orders.
	subject := func(name string) string {
		subject, _, _ := strings.Cut(name, ":")
		return subject
	}
	redis, disconnect := connect()
	defer disconnect()
	locks, err := rlock.New(redis, rlock.Options{
		Tracer: holdfastotel.New(holdfastotel.WithNameFunc(subject)),
	})
	if err != nil {
		panic(err)
	}
	_ = locks.Close(context.Background())
}
