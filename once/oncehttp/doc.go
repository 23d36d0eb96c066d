// Package oncehttp lets HTTP clients repeat a request without repeating its effect. A client sends
// the header Idempotency-Key, as in the IETF draft of that name. The first request with a key runs
// the handler, and later requests with the key get the stored response.
//
//	handler := oncehttp.Handler(client, 24*time.Hour, user, payments, oncehttp.Options{})
//
// Here, user is a function that returns the sender of a request. Each user has separate keys, so
// nobody can read the response to another user.
package oncehttp
