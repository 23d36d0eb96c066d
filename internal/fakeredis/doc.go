// Package fakeredis is a Redis server for tests whose subject is time. It speaks RESP3 over
// net.Pipe and starts no goroutine that waits for the network, so it and its clients run inside a
// testing/synctest bubble: there an hour of renewals takes milliseconds, and "at the deadline" is
// exact.
//
// It has no data and knows no commands but those that set up, check and subscribe a connection. A
// test gives it a [Handler] for whatever else its subject sends, and thereby decides what the
// server replies and when:
//
//	synctest.Test(t, func(t *testing.T) {
//		server := fakeredis.New()
//		defer server.Close()
//		server.Handle("EVALSHA", func(args []string) any { return nil })
//		client, err := rueidis.NewClient(server.ClientOption())
//		...
//		server.Pause() // from here on nothing is executed
//		time.Sleep(time.Minute)
//	})
//
// It proves nothing about Redis: what scripts do must be tested on a real server, see package
// redistest.
package fakeredis
