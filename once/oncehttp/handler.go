package oncehttp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"holdfast/once"
	"holdfast/rlock"
)

// Options configures a [Handler]. The zero value has all defaults.
type Options struct {
	// Optional passes POST and PATCH requests without a key on to the handler, which then runs each
	// time. Otherwise such a request gets the status 400.
	Optional bool

	// NoWait replies to a request with the status 409 while another request with its key is running.
	// Otherwise the request waits for the response, until the context of the request ends.
	NoWait bool

	// MaxRequest limits the body of a request with a key, because the body is read into memory. A
	// larger request gets the status 413. Defaults to 1 MiB.
	MaxRequest int64

	// MaxResponse limits the body of a stored response. If the handler writes more, its writes fail
	// with [ErrTooLarge], and all requests with the key get the status 500, without another run.
	// Defaults to 1 MiB.
	MaxResponse int

	// Error writes the response to a request that gets no response from the handler. Set Error to log
	// such requests, or to write another format. Defaults to [http.Error], with the text of err for a
	// status below 500, and with the text of the status otherwise.
	Error func(w http.ResponseWriter, r *http.Request, status int, err error)
}

// ErrTooLarge is the error of a write beyond Options.MaxResponse.
var ErrTooLarge = errors.New("the response is larger than oncehttp.Options.MaxResponse")

// Handler returns a handler that runs next once for each idempotency key of a POST or PATCH
// request. It stores the status, headers and body of the response for ttl, and sends them in reply
// to later requests with the key, with the header "Idempotency-Replayed: true". Requests with other
// methods go to next.
//
// principal returns the sender of a request, such as the id of the authenticated user. Only
// requests of the same principal share a key. A request with the principal "" gets the status 403.
// If all users may see all responses, return the same text for all. principal must not be nil.
//
// If next responds with a status of 500 or more, the response is sent but not stored, and the next
// request with the key runs next again. Nor is anything stored if next writes nothing and the
// context of the request has ended. Any other response of next is stored before it is sent. Instead
// of a response of next, a client gets
//   - 400 if the key is missing, repeated, or longer than 255 bytes,
//   - 403, 413 or 500 as described for principal, Options.MaxRequest and Options.MaxResponse,
//   - 409 with Options.NoWait while another request with the key is running,
//   - 422 if the key was used with another method, host, URL or body,
//   - 500 or 503 if Redis fails or the lock is lost. next may have run, and its response was not
//     stored. With 503, a retry may succeed.
//
// While Redis is down, a request waits until its context ends. To bound the wait, wrap the returned
// handler with [http.TimeoutHandler].
//
// The request that next gets has its own context, which ends when the lock of the key is lost, or
// when the client disconnects. To finish a request whose client has disconnected, wrap the returned
// handler in a handler that calls [http.Request.WithContext] with a context from
// [context.WithoutCancel] and a timeout. Pass the context of the request to [once.Token] to get the
// fencing token. The response is sent after next has returned, so next cannot flush or hijack.
func Handler(client *rlock.Client, ttl time.Duration, principal func(*http.Request) string,
	next http.Handler, o Options,
) http.Handler {
	if principal == nil {
		panic("oncehttp.Handler: principal is nil; pass a function that returns the sender of a request")
	}
	o.MaxRequest = cmp.Or(o.MaxRequest, 1<<20)
	o.MaxResponse = cmp.Or(o.MaxResponse, 1<<20)
	if o.Error == nil {
		o.Error = writeError
	}
	return &handler{client: client, ttl: ttl, principal: principal, next: next, Options: o}
}

type handler struct {
	Options
	client    *rlock.Client
	ttl       time.Duration
	principal func(*http.Request) string
	next      http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost && r.Method != http.MethodPatch {
		h.next.ServeHTTP(w, r)
		return
	}
	key, err := keyOf(r)
	switch {
	case errors.Is(err, errNoKey) && h.Optional:
		h.next.ServeHTTP(w, r)
		return
	case err != nil:
		h.Error(w, r, http.StatusBadRequest, err)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxRequest))
	if err != nil {
		status := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		h.Error(w, r, status, err)
		return
	}
	asked := r.Clone(r.Context()) // principal may parse the body
	asked.Body = io.NopCloser(bytes.NewReader(body))
	principal := h.principal(asked)
	if principal == "" {
		h.Error(w, r, http.StatusForbidden, errNobody)
		return
	}
	h.serve(w, r, redisKey(principal, key), body)
}

// serve replies to a request with the response of the key.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	// RequestURI is what the client sent, even behind http.StripPrefix.
	request := fmt.Appendf(nil, "%s %s %s\n%s", r.Method, r.Host,
		cmp.Or(r.RequestURI, r.URL.RequestURI()), body)
	options := []once.Option{once.Fingerprint(request)}
	if h.NoWait {
		options = append(options, once.NoWait())
	}
	ran := false
	got, err := once.Do(r.Context(), h.client, key, h.ttl,
		func(ctx context.Context) (response, error) {
			ran = true
			inner := r.WithContext(ctx)
			inner.Body = io.NopCloser(bytes.NewReader(body))
			rec := recorder{header: http.Header{}, limit: h.MaxResponse}
			h.next.ServeHTTP(&rec, inner)
			if rec.sent.Status == 0 && r.Context().Err() != nil {
				// A stored 200 would tell the client that its request had succeeded.
				return response{}, fmt.Errorf("%w: %w", errGaveUp, context.Cause(r.Context()))
			}
			return rec.response()
		}, options...)
	switch {
	case errors.Is(err, errNotStored):
		ran = true // the response with the error is the handler's
	case err != nil:
		h.fail(w, r, err)
		return
	}
	if got.TooLarge {
		h.Error(w, r, http.StatusInternalServerError, ErrTooLarge)
		return
	}
	for name, values := range got.Header {
		texts := make([]string, len(values))
		for i, value := range values {
			texts[i] = string(value)
		}
		w.Header()[name] = texts
	}
	if !ran {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	w.WriteHeader(got.Status)
	_, _ = w.Write(got.Body) // the client may have left
}

// fail replies to a request without a response.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusServiceUnavailable
	var server *rlock.ServerError
	switch {
	case errors.Is(err, once.ErrMismatch) && !errors.Is(err, once.ErrNotRecorded):
		status = http.StatusUnprocessableEntity
	case h.NoWait && errors.Is(err, rlock.ErrNotRun) && errors.Is(err, rlock.ErrNotAcquired):
		status = http.StatusConflict
	case errors.Is(err, rlock.ErrInvalid), // such as a ttl of 0
		errors.As(err, &server) && server.Class == rlock.ClassPermanent:
		status = http.StatusInternalServerError
	}
	if status == http.StatusConflict || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1") // second
	}
	h.Error(w, r, status, err)
}

func writeError(w http.ResponseWriter, _ *http.Request, status int, err error) {
	text := http.StatusText(status)
	if status < http.StatusInternalServerError {
		text = err.Error()
	}
	http.Error(w, text, status)
}
