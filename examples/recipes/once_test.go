package recipes

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlocktest"
)

func TestCardIsChargedOnceForAnOrderUnlessThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		down, tokens := errors.New("the bank is down"), []int64{}
		charge := func(_ context.Context, order string, fence int64) (string, error) {
			tokens = append(tokens, fence)
			time.Sleep(time.Second)
			if len(tokens) == 1 {
				return "", down
			}
			return "receipt of " + order, nil
		}
		for i := range 3 {
			receipt, err := pay(t.Context(), redis.Client(), "17", charge)
			if i == 0 {
				require.ErrorIs(t, err, down)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, "receipt of 17", receipt)
		}
		require.Len(t, tokens, 2)
		require.Greater(t, tokens[1], tokens[0])
	})
}

func TestRequestWithAKeyIsHandledOnceForEachUser(t *testing.T) {
	t.Parallel()
	handled := 0
	handler := payments(rlocktest.New(t).Client(),
		func(r *http.Request) string { return r.Header.Get("User") },
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { handled++ }))
	for _, user := range []string{"ada", "ada", "ben"} {
		r := httptest.NewRequest(http.MethodPost, "/payments", http.NoBody)
		r.Header.Set("User", user)
		r.Header.Set("Idempotency-Key", `"17"`)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code)
	}
	require.Equal(t, 2, handled)
}
