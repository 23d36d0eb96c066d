package oncehttp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

const (
	header     = "Idempotency-Key"
	longestKey = 255
)

var (
	errNoKey = errors.New("the header Idempotency-Key is missing; send a new key with each new " +
		"request, and the same key when you repeat a request")
	errEmpty = errors.New("the header Idempotency-Key is empty; send a new key with each new request")
	errKeys  = errors.New("the request has several Idempotency-Key headers; send one")
	errLong  = fmt.Errorf("the header Idempotency-Key is longer than %d bytes; send a shorter key",
		longestKey)
	errNobody = errors.New("the request has no principal, so its key belongs to nobody; " +
		"authenticate the request first")
)

// keyOf returns the key of a request. In the draft, the key is a text in quotes, which many clients
// leave out.
func keyOf(r *http.Request) (string, error) {
	keys := r.Header.Values(header)
	switch len(keys) {
	case 0:
		return "", errNoKey
	case 1:
	default:
		return "", errKeys
	}
	key := strings.TrimSpace(keys[0])
	if inner, ok := strings.CutPrefix(key, `"`); ok && strings.HasSuffix(inner, `"`) {
		key = strings.TrimSuffix(inner, `"`)
	}
	switch {
	case key == "":
		return "", errEmpty
	case len(key) > longestKey:
		return "", errLong
	}
	return key, nil
}

// redisKey returns the key for package once. It is a hash, because clients choose the key, and a
// key with braces would choose its cluster slot. The length keeps principals apart.
func redisKey(principal, key string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(principal), principal, key))
	return "http:" + hex.EncodeToString(sum[:])
}
