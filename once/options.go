package once

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
)

// Option changes how [Do] works.
type Option func(*settings)

type settings struct {
	print     string // the fingerprint; noPrint without one
	noWait    bool
	marshal   func(v any) ([]byte, error)
	unmarshal func(data []byte, v any) error
}

// noPrint is the fingerprint of a request without one. No hash has this text.
const noPrint = "-"

func newSettings(options []Option) settings {
	s := settings{print: noPrint, marshal: marshal, unmarshal: unmarshal}
	for _, option := range options {
		option(&s)
	}
	return s
}

// Fingerprint makes [Do] return [ErrMismatch] if the result of the key was stored for another
// request. The request is whatever determines the result, such as the body of an HTTP request.
// Redis stores only a hash of the request.
func Fingerprint(request []byte) Option {
	sum := sha256.Sum256(request)
	return func(s *settings) { s.print = base64.RawURLEncoding.EncodeToString(sum[:]) }
}

// NoWait makes [Do] return an error that matches [rlock.ErrNotAcquired], instead of waiting, if
// another caller is running its function for the key.
func NoWait() Option { return func(s *settings) { s.noWait = true } }

// Codec sets how results are encoded, as in Codec(json.Marshal, json.Unmarshal). By default, Do
// stores results as JSON, and a []byte as it is.
func Codec(marshal func(v any) ([]byte, error), unmarshal func(data []byte, v any) error) Option {
	return func(s *settings) { s.marshal, s.unmarshal = marshal, unmarshal }
}

func marshal(v any) ([]byte, error) {
	if data, ok := v.([]byte); ok {
		return data, nil
	}
	return json.Marshal(v)
}

func unmarshal(data []byte, v any) error {
	if result, ok := v.(*[]byte); ok {
		*result = data
		return nil
	}
	return json.Unmarshal(data, v)
}
