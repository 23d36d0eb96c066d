package recipes

import (
	"context"
	"net/http"
	"time"

	"holdfast/once"
	"holdfast/once/oncehttp"
	"holdfast/rlock"
)

// pay charges the card once for each order, however often and wherever it is called.
func pay(ctx context.Context, client *rlock.Client, order string,
	charge func(ctx context.Context, order string, fence int64) (receipt string, err error),
) (receipt string, err error) {
	return once.Do(ctx, client, "payment:"+order, 24*time.Hour,
		func(ctx context.Context) (string, error) {
			return charge(ctx, order, once.Token(ctx))
		})
}

func payments(client *rlock.Client, user func(*http.Request) string,
	next http.Handler,
) http.Handler {
	return oncehttp.Handler(client, 24*time.Hour, user, next, oncehttp.Options{})
}
