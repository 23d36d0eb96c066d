// Package web stands in for net/http, which takes seconds to load.
package web

import "context"

const (
	MethodGet                 = "GET"
	StatusConflict            = 409
	StatusInternalServerError = 500
	StatusNotFound            = 404
	StatusServiceUnavailable  = 503
)

type Request struct {
	URL struct{ Path string }
	ctx context.Context
}

func (r *Request) Context() context.Context                 { return r.ctx }
func (r *Request) FormValue(key string) string              { return key }
func (r *Request) WithContext(ctx context.Context) *Request { return &Request{ctx: ctx} }

type ResponseWriter interface {
	Write(p []byte) (int, error)
}

type HandlerFunc func(w ResponseWriter, r *Request)

type Client struct{}

var DefaultClient *Client

func (c *Client) Do(r *Request) (any, error) { return nil, nil }

type Server struct{}

func (s *Server) Shutdown(ctx context.Context) error { return nil }

func Error(w ResponseWriter, text string, code int) {}

func NewRequestWithContext(ctx context.Context, method, url string, body any) (*Request, error) {
	return &Request{ctx: ctx}, nil
}
