package recipes

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"holdfast/rlocktest"
)

func TestRequestIsRejectedIfTheOrderIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		broken := false
		handler := http.NewServeMux()
		handler.Handle("POST /orders/{id}/ship", shipHandler(redis.Client(),
			func(_ context.Context, order string) error {
				require.Equal(t, "42", order)
				if broken {
					return errors.New("the printer is out of paper")
				}
				return nil
			}))
		status := func() int {
			response := httptest.NewRecorder()
			handler.ServeHTTP(response, httptest.NewRequestWithContext(
				t.Context(), http.MethodPost, "/orders/42/ship", nil))
			return response.Code
		}
		require.Equal(t, http.StatusOK, status())
		free := redis.Busy("order:42")
		require.Equal(t, http.StatusConflict, status())
		free()
		broken = true
		require.Equal(t, http.StatusInternalServerError, status())
	})
}
