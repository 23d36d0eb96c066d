// Package faultproxy is a TCP proxy that plays the faults of a network between a client and a server in a test.
//
// It knows nothing of the protocol that passes through: it holds bytes back, delays them, forgets them and resets
// connections. A [Proxy] starts without any fault; each method adds or ends one at once, also on the connections that exist.
package faultproxy
