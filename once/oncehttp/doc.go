// Package oncehttp lets HTTP clients repeat a request without repeating its effect. A client sends
// a header Idempotency-Key, as in the IETF draft of that name. The first request with the key runs
// the handler, and later requests get the stored response.
//
//	handler := oncehttp.Handler(client, 24*time.Hour, user, payments, oncehttp.Options{})
//
// Here user is a function that returns who sends a request. Keys of different users never meet, so
// nobody can read the response to somebody else.
package oncehttp
