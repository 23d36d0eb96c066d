// Service is the program of docs/guide.md, a web service that never ships an order twice at once.
package main

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"holdfast/rlock"
)

type shop struct{ locks *rlock.Client }

func pack(ctx context.Context, order string) error { return nil } // your work

func (s shop) ship(ctx context.Context, order string) (err error) {
	hold, err := s.locks.NewLock("order:"+order).TryLock(ctx, 3*time.Second, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)          // err reports a lost lock
	return pack(hold.Context(), order) // this context ends if the lock is lost
}

func (s shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch err := s.ship(r.Context(), r.PathValue("id")); {
	case errors.Is(err, rlock.ErrNotAcquired):
		http.Error(w, "another request ships this order", http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func serve(ctx context.Context, at rueidis.ClientOption, requests net.Listener) (err error) {
	redis, err := rueidis.NewClient(at)
	if err != nil {
		return err
	}
	defer redis.Close()
	locks, err := rlock.New(redis, rlock.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(context.Background())) }()

	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/ship", shop{locks})
	server := &http.Server{Handler: mux}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(requests) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done(): // SIGTERM
	}
	grace, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return server.Shutdown(grace) // waits for requests, which release their locks
}

func main() {
	requests, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = serve(ctx, rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}}, requests)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}
