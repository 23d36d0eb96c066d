package fenced

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// handler commits what work does for a request, unless the token of the request is stale.
func handler(db *sql.DB, work func(*http.Request, *sql.Tx) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, err := strconv.ParseInt(r.Header.Get("Fencing-Token"), 10, 64)
		if err != nil {
			http.Error(w, "the header Fencing-Token must be a number", http.StatusPreconditionRequired)
			return
		}
		err = commit(r.Context(), db, r.URL.Path, token, func(_ context.Context, tx *sql.Tx) error {
			return work(r, tx)
		})
		switch {
		case errors.Is(err, errStale):
			http.Error(w, err.Error(), http.StatusPreconditionFailed)
		case err != nil:
			http.Error(w, "not committed", http.StatusInternalServerError)
		}
	}
}

// put sends a request with the token of a hold.
func put(ctx context.Context, url string, body io.Reader, token int64) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, body)
	if err != nil {
		return err
	}
	r.Header.Set("Fencing-Token", strconv.FormatInt(token, 10))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusPreconditionFailed:
		return errStale
	case response.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("put %s: %s", url, response.Status)
	}
	return nil
}
