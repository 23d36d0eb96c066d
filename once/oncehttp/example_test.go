package oncehttp_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"holdfast/once/oncehttp"
	"holdfast/rlock"
)

// connect stands for what a program does when it starts. Here the server is inside the program, so
// that the example runs anywhere. It does not speak all of RESP3; a real Redis needs neither of the
// last two options.
func connect() (client *rlock.Client, disconnect func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	redis, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:  []string{server.Addr()},
		AlwaysRESP2:  true,
		DisableCache: true,
	})
	if err != nil {
		panic(err)
	}
	client, err = rlock.New(redis, rlock.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	return client, func() {
		_ = client.Close(context.Background())
		redis.Close()
		server.Close()
	}
}

func ExampleHandler() {
	client, disconnect := connect()
	defer disconnect()

	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("charge the card")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "paid")
	})
	user := func(r *http.Request) string { // only after authentication
		name, _, _ := r.BasicAuth()
		return name
	}
	handler := oncehttp.Handler(client, 24*time.Hour, user, pay, oncehttp.Options{})

	for range 2 { // a client that repeats its request
		r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader(`{"amount": 5}`))
		r.Header.Set("Idempotency-Key", "8e03978e-40d5-43e8-bc93-6894a57f9324")
		r.SetBasicAuth("ada", "secret")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Printf("%d %s, replayed: %q\n", w.Code, w.Body, w.Header().Get("Idempotency-Replayed"))
	}
	// Output:
	// charge the card
	// 201 paid, replayed: ""
	// 201 paid, replayed: "true"
}
