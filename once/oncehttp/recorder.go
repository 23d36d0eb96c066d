package oncehttp

import (
	"errors"
	"net/http"
)

// errNotStored is the error of a run whose response is not stored.
var errNotStored = errors.New("the status is 500 or more")

// errGaveUp is the error of a run without a response whose request has ended.
var errGaveUp = errors.New("the handler wrote no response, and the request has ended")

// response is the stored response of a key.
type response struct {
	Status   int
	Header   map[string][][]byte // not an http.Header, because JSON has no text for all bytes
	Body     []byte
	TooLarge bool `json:",omitempty"` // there is no body
}

// recorder keeps what a handler writes.
type recorder struct {
	header http.Header
	limit  int // of the body
	sent   response
}

func (rec *recorder) Header() http.Header { return rec.header }

// WriteHeader keeps the status and the headers so far. It ignores informational responses.
func (rec *recorder) WriteHeader(status int) {
	if rec.sent.Status == 0 && status >= 200 {
		rec.sent.Status, rec.sent.Header = status, make(map[string][][]byte)
		for name, values := range rec.header {
			bytes := make([][]byte, len(values)) // without values, package http leaves out its own
			for i, value := range values {
				bytes[i] = []byte(value)
			}
			rec.sent.Header[name] = bytes
		}
	}
}

func (rec *recorder) Write(data []byte) (int, error) {
	rec.WriteHeader(http.StatusOK)
	if len(rec.sent.Body)+len(data) > rec.limit {
		rec.sent.TooLarge = true
	}
	if rec.sent.TooLarge {
		return 0, ErrTooLarge
	}
	rec.sent.Body = append(rec.sent.Body, data...)
	return len(data), nil
}

// response returns what the handler has written. With errNotStored, the next request runs the
// handler again.
func (rec *recorder) response() (response, error) {
	rec.WriteHeader(http.StatusOK)
	switch {
	case rec.sent.Status >= http.StatusInternalServerError:
		return rec.sent, errNotStored
	case rec.sent.TooLarge:
		rec.sent.Body = nil
	}
	return rec.sent, nil
}
