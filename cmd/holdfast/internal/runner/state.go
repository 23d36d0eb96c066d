package runner

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"holdfast/internal/printable"
	"holdfast/rlock"
)

// state is the lock of a sidecar, as its pod sees it. It is safe for concurrent use.
type state struct {
	mu    sync.Mutex
	hold  *rlock.Hold // nil without the lock; guarded by mu
	since time.Time   // guarded by mu
}

func (s *state) set(hold *rlock.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold, s.since = hold, time.Now()
}

// stateJSON is what a pod can learn.
type stateJSON struct {
	Name     string     `json:"name"`
	Held     bool       `json:"held"`
	Owner    string     `json:"owner,omitempty"`
	Token    int64      `json:"token,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	Deadline *time.Time `json:"deadline,omitempty"` // until the next renewal
}

// read returns the state at this moment.
func (s *state) read(name string) stateJSON {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := stateJSON{Name: printable.Text(name)}
	if s.hold == nil || !s.hold.Valid() {
		return j
	}
	since, deadline := s.since.UTC(), s.hold.Deadline().UTC()
	j.Held, j.Owner, j.Token, j.Since, j.Deadline = true, s.hold.Owner(), s.hold.Token(), &since,
		&deadline
	return j
}

// json returns the state as a line.
func (s *state) json(name string) []byte {
	line, err := json.Marshal(s.read(name))
	if err != nil {
		panic(err) // the type has a form for every value
	}
	return append(line, '\n')
}

// headerTime bounds how long a client of the HTTP server may take.
const headerTime = 5 * time.Second

// serve serves the state until stop is called: /readyz for probes, and / as JSON.
func (s *sidecar) serve(listener net.Listener) (stop func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.state.read(s.Name).Held {
			_, _ = w.Write([]byte("held\n"))
			return
		}
		http.Error(w, "not held", http.StatusServiceUnavailable)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(s.state.json(s.Name))
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTime}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := server.Serve(listener)
		if !errors.Is(err, http.ErrServerClosed) {
			s.warn("--http: %v", err)
		}
	}()
	return func() {
		_ = server.Close()
		<-ended
	}
}
