package recipes

import (
	"context"
	"errors"
	"net/http"
	"time"

	"holdfast/rlock"
)

func shipHandler(client *rlock.Client,
	ship func(ctx context.Context, order string) error,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
		defer cancel()
		order := r.PathValue("id")
		lock := client.NewLock("order:" + order)
		err := rlock.Do(ctx, lock, 2*time.Second, rlock.Watchdog, func(ctx context.Context) error {
			return ship(ctx, order)
		})
		switch {
		case errors.Is(err, rlock.ErrNotRun) && errors.Is(err, rlock.ErrNotAcquired):
			http.Error(w, "the order is busy", http.StatusConflict)
		case err != nil:
			http.Error(w, "the order was not shipped", http.StatusInternalServerError)
		}
	}
}
