package oncehttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/once"
	"holdfast/once/oncehttp"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

const ttl = time.Hour

// user is the principal of a request in these tests.
func user(r *http.Request) string { return r.Header.Get("User") }

// service is a handler that counts its runs.
type service struct {
	runs    atomic.Int64
	handler http.Handler
}

// newService returns a service with next, or with a handler that replies with the number of the run
// and the body.
func newService(redis *rlocktest.Redis, o oncehttp.Options, next http.HandlerFunc) *service {
	s := new(service)
	count := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run := s.runs.Add(1)
		if next != nil {
			next(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Run", strconv.FormatInt(run, 10))
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("Late", "not sent")
		_, _ = w.Write(body)
	})
	s.handler = oncehttp.Handler(redis.Client(), ttl, user, count, o)
	return s
}

// request describes a request; the fields have defaults.
type request struct{ method, path, key, user, body string }

func (s *service) send(ctx context.Context, q request) *httptest.ResponseRecorder {
	or := func(a, b string) string {
		if a == "" {
			return b
		}
		return a
	}
	r := httptest.NewRequestWithContext(ctx, or(q.method, "POST"), or(q.path, "/pay"),
		strings.NewReader(or(q.body, "5 EUR")))
	if q.key != "-" {
		r.Header.Set("Idempotency-Key", or(q.key, "k1"))
	}
	if q.user != "-" {
		r.Header.Set("User", or(q.user, "ada"))
	}
	w := httptest.NewRecorder()
	w.Header().Set("Outer", "kept")
	s.handler.ServeHTTP(w, r)
	return w
}

func bubble(t *testing.T, test func(t *testing.T, redis *rlocktest.Redis)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, rlocktest.New(t)) })
}

func TestRepeatedRequestGetsTheStoredResponse(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		s := newService(redis, oncehttp.Options{}, nil)
		for i, key := range []string{"k1", `"k1"`, " k1 "} {
			w := s.send(t.Context(), request{key: key})
			require.Equal(t, http.StatusCreated, w.Code)
			require.Equal(t, "5 EUR", w.Body.String())
			want := http.Header{"Run": {"1"}, "Outer": {"kept"}}
			if i > 0 {
				want.Set("Idempotency-Replayed", "true")
			}
			require.Equal(t, want, w.Result().Header) //nolint:bodyclose // has nothing to close
		}
		time.Sleep(ttl)
		require.Equal(t, "2", s.send(t.Context(), request{}).Header().Get("Run"))

		silent := newService(redis, oncehttp.Options{}, func(http.ResponseWriter, *http.Request) {})
		for range 2 {
			require.Equal(t, http.StatusOK, silent.send(t.Context(), request{key: "k2"}).Code)
		}
		require.EqualValues(t, 1, silent.runs.Load())
	})
}

func TestKeysOfDifferentUsersNeverMeet(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		s := newService(redis, oncehttp.Options{}, nil)
		// The last two would be equal if their user and key were only joined.
		for i, q := range []request{{user: "ada"}, {user: "ben"}, {user: "a", key: "bc"},
			{user: "ab", key: "c"}} {
			require.Equal(t, strconv.Itoa(i+1), s.send(t.Context(), q).Header().Get("Run"))
		}
		require.Equal(t, http.StatusForbidden, s.send(t.Context(), request{user: "-"}).Code)
		require.EqualValues(t, 4, s.runs.Load())
		require.Panics(t, func() {
			oncehttp.Handler(redis.Client(), ttl, nil, s.handler, oncehttp.Options{})
		})
	})
}

func TestAnotherRequestUnderTheKeyIsUnprocessable(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		s := newService(redis, oncehttp.Options{}, nil)
		require.Equal(t, http.StatusCreated, s.send(t.Context(), request{}).Code)
		for _, q := range []request{{body: "6 EUR"}, {path: "/refund"}, {path: "/pay?to=ben"},
			{method: "PATCH"}} {
			w := s.send(t.Context(), q)
			require.Equal(t, http.StatusUnprocessableEntity, w.Code)
			require.Contains(t, w.Body.String(), once.ErrMismatch.Error())
		}
		require.EqualValues(t, 1, s.runs.Load())
	})
}

func TestRequestWithoutAUsableKeyIsRejected(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		s := newService(redis, oncehttp.Options{}, nil)
		for _, key := range []string{"-", `""`, strings.Repeat("k", 256)} {
			require.Equal(t, http.StatusBadRequest, s.send(t.Context(), request{key: key}).Code)
		}
		r := httptest.NewRequest(http.MethodPost, "/pay", nil)
		r.Header["Idempotency-Key"] = []string{"a", "b"}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Zero(t, s.runs.Load())
		require.Equal(t, http.StatusCreated,
			s.send(t.Context(), request{key: strings.Repeat("k", 255)}).Code)

		// Nobody asked for these to be idempotent.
		for range 2 {
			require.Equal(t, http.StatusCreated, s.send(t.Context(), request{method: "PUT"}).Code)
		}
		require.EqualValues(t, 3, s.runs.Load())
		s = newService(redis, oncehttp.Options{Optional: true}, nil)
		for range 2 {
			require.Equal(t, http.StatusCreated, s.send(t.Context(), request{key: "-", user: "-"}).Code)
		}
		require.EqualValues(t, 2, s.runs.Load())
	})
}

func TestRunningRequestMakesOthersWaitOrConflict(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		slow := func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Minute)
			_, _ = io.WriteString(w, "done")
		}
		waits := newService(redis, oncehttp.Options{}, slow)
		impatient := newService(redis, oncehttp.Options{NoWait: true}, slow)
		first := make(chan string)
		go func() { first <- waits.send(t.Context(), request{}).Body.String() }()
		synctest.Wait()

		w := impatient.send(t.Context(), request{})
		require.Equal(t, http.StatusConflict, w.Code)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w = waits.send(ctx, request{})
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		require.Equal(t, "Service Unavailable\n", w.Body.String(), "nothing from inside")

		require.Equal(t, "done", waits.send(t.Context(), request{}).Body.String())
		require.Equal(t, "done", <-first)
		require.Equal(t, "done", impatient.send(t.Context(), request{}).Body.String())
		require.EqualValues(t, 1, waits.runs.Load())
		require.Zero(t, impatient.runs.Load())
	})
}

func TestServerErrorsAreNotStored(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		status := http.StatusBadGateway
		s := newService(redis, oncehttp.Options{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Try", "again")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(status)
			w.WriteHeader(http.StatusOK) // too late
			_, _ = io.WriteString(w, "text")
		})
		w := s.send(t.Context(), request{})
		require.Equal(t, http.StatusBadGateway, w.Code)
		require.Equal(t, "text", w.Body.String())
		require.Equal(t, "again", w.Header().Get("Try"))
		require.Empty(t, w.Header().Get("Idempotency-Replayed"))
		status = http.StatusNotFound
		for range 2 {
			require.Equal(t, http.StatusNotFound, s.send(t.Context(), request{}).Code)
		}
		require.EqualValues(t, 2, s.runs.Load())
	})
}

func TestHeadersKeepTheirBytes(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		const latin1 = "attachment; filename=\"caf\xe9\""
		s := newService(redis, oncehttp.Options{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Disposition", latin1)
			w.Header()["Outer"], w.Header()["Date"] = []string{"1", "2"}, nil
		})
		for range 2 {
			w := s.send(t.Context(), request{})
			require.Equal(t, latin1, w.Header().Get("Content-Disposition"))
			require.Equal(t, []string{"1", "2"}, w.Header()["Outer"])
			require.Contains(t, w.Header(), "Date")
		}
		require.EqualValues(t, 1, s.runs.Load())
	})
}

func TestHandlerThatGivesUpForAClientThatLeftRunsAgain(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		ctx, leave := context.WithCancel(t.Context())
		s := newService(redis, oncehttp.Options{}, func(w http.ResponseWriter, r *http.Request) {
			leave()
			if r.Context().Err() == nil {
				w.WriteHeader(http.StatusCreated)
			}
		})
		require.Equal(t, http.StatusServiceUnavailable, s.send(ctx, request{}).Code)
		for range 2 {
			require.Equal(t, http.StatusCreated, s.send(t.Context(), request{}).Code)
		}
		require.EqualValues(t, 2, s.runs.Load())
	})
}

func TestSizesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		s := newService(redis, oncehttp.Options{MaxRequest: 5, MaxResponse: 5}, nil)
		require.Equal(t, http.StatusCreated, s.send(t.Context(), request{body: "12345"}).Code)
		require.Equal(t, http.StatusRequestEntityTooLarge,
			s.send(t.Context(), request{key: "k2", body: "123456"}).Code)
		require.EqualValues(t, 1, s.runs.Load())

		s = newService(redis, oncehttp.Options{MaxResponse: 5},
			func(w http.ResponseWriter, r *http.Request) {
				for _, part := range []string{"123", "456", "7"} {
					_, err := io.WriteString(w, part)
					if errors.Is(err, oncehttp.ErrTooLarge) != (part != "123") {
						t.Error(part, err)
					}
				}
			})
		for range 2 {
			w := s.send(t.Context(), request{key: "k3"})
			require.Equal(t, http.StatusInternalServerError, w.Code)
			require.Equal(t, "Internal Server Error\n", w.Body.String())
		}
		require.EqualValues(t, 1, s.runs.Load(), "what it has done stays done")
	})
}

func TestUnstoredResponseIsNotSent(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		var failure error
		o := oncehttp.Options{Error: func(w http.ResponseWriter, r *http.Request, status int, err error) {
			failure = err
			http.Error(w, "problem", status)
		}}
		c, err := rueidis.NewClient(redis.ClientOption())
		require.NoError(t, err)
		defer c.Close()
		s := newService(redis, o, func(w http.ResponseWriter, r *http.Request) {
			if once.Token(r.Context()) == 0 {
				t.Error("no token")
			}
			held := c.B().Keys().Pattern("once:http:*").Build()
			locks, err := c.Do(t.Context(), held).AsStrSlice()
			if err != nil || len(locks) != 1 {
				t.Error(locks, err)
				return
			}
			redis.Lose(locks[0])
			<-r.Context().Done()
		})
		w := s.send(t.Context(), request{})
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, "problem\n", w.Body.String())
		require.ErrorIs(t, failure, once.ErrNotRecorded)
		require.ErrorIs(t, failure, rlock.ErrLost)

		redis.Down()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, http.StatusServiceUnavailable, s.send(ctx, request{key: "k2"}).Code)
		redis.Up()
		s.handler = oncehttp.Handler(redis.Client(), 0, user, s.handler, oncehttp.Options{})
		require.Equal(t, http.StatusInternalServerError, s.send(t.Context(), request{}).Code)
	})
}

// The handler has run, so 422, which says that it has not, would be wrong.
func TestRunWhoseKeyAnotherRequestTookIsUnavailable(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		redis.Allow(rlocktest.Check(^0)) // the first run loses its lock
		c, err := rueidis.NewClient(redis.ClientOption())
		require.NoError(t, err)
		defer c.Close()
		other := new(service)
		other.handler = oncehttp.Handler(redis.NewClient(rlock.Options{}), ttl, user,
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
			oncehttp.Options{})
		s := newService(redis, oncehttp.Options{}, func(w http.ResponseWriter, r *http.Request) {
			locks, err := c.Do(t.Context(), c.B().Keys().Pattern("once:http:*").Build()).AsStrSlice()
			if err != nil || len(locks) != 1 {
				t.Error(locks, err)
				return
			}
			redis.Lose(locks[0])
			<-r.Context().Done()
			if got := other.send(t.Context(), request{body: "another"}); got.Code != http.StatusOK {
				t.Error(got.Code)
			}
			w.WriteHeader(http.StatusOK)
		})
		require.Equal(t, http.StatusServiceUnavailable, s.send(t.Context(), request{body: "one"}).Code)
	})
}

func TestPrincipalMayReadTheForm(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		h := oncehttp.Handler(redis.Client(), ttl,
			func(r *http.Request) string { return r.FormValue("user") },
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, r.FormValue("amount"))
			}), oncehttp.Options{})
		send := func(body string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodPost, "/pay", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Idempotency-Key", "k1")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		require.Equal(t, "5", send("user=ada&amount=5").Body.String())
		require.Equal(t, http.StatusUnprocessableEntity, send("user=ada&amount=6").Code)
	})
}

func TestRequestForAnotherHostOrPathIsAnotherRequest(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		s := newService(redis, oncehttp.Options{}, nil)
		mux := http.NewServeMux()
		mux.Handle("/a/", http.StripPrefix("/a", s.handler))
		mux.Handle("/b/", http.StripPrefix("/b", s.handler))
		for _, of := range []struct {
			host, path string
			status     int
		}{
			{"one", "/a/pay", http.StatusCreated},
			{"one", "/b/pay", http.StatusUnprocessableEntity},
			{"two", "/a/pay", http.StatusUnprocessableEntity},
		} {
			r := httptest.NewRequest(http.MethodPost, of.path, strings.NewReader("5"))
			r.Host = of.host
			r.Header.Set("Idempotency-Key", "k1")
			r.Header.Set("User", "ada")
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			require.Equal(t, of.status, w.Code, of.host+of.path)
		}
	})
}

func TestServerErrorThatIsTooLargeIsNotSentInPart(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		next := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "12345")
			_, _ = io.WriteString(w, "67890")
		}
		s := newService(redis, oncehttp.Options{MaxResponse: 5}, next)
		w := s.send(t.Context(), request{})
		require.Equal(t, http.StatusInternalServerError, w.Code)
		require.NotContains(t, w.Body.String(), "12345")
	})
}

func TestEmptyKeyIsNotAMissingOne(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		s := newService(redis, oncehttp.Options{Optional: true}, nil)
		for _, key := range []string{"", " ", `""`} {
			r := httptest.NewRequest(http.MethodPost, "/pay", http.NoBody)
			r.Header.Set("Idempotency-Key", key)
			r.Header.Set("User", "ada")
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			require.Equal(t, http.StatusBadRequest, w.Code, "%q", key)
		}
	})
}
