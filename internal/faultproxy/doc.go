// Package faultproxy provides a proxy between a Redis client and a server. In a test it plays the
// faults of a network, and those of a server that cannot be had on demand. A [Proxy] stands before
// one server, a [Network] before all that a client dials. [StartInMemory] has no port, for servers
// and clients in a testing/synctest bubble.
//
// A proxy starts without faults. Each method adds or ends one at once, also on existing
// connections:
//
//	HoldRequests, HoldReplies, BlackHole, BlackHoleNew    keep everything, one way or both
//	DropRequests, DropReplies                             lose it, one way; connections stay up
//	HoldMessages, DropMessages                            the same for pub/sub; commands go on
//	Delay, DelayRequests, DelayReplies                    make it late
//	Reset, Refuse                                         break connections, accept no new ones
//	MoveTo                                                have new ones reach another server
//	CutReply, Reply, Answer, Replace                      happen to requests with a given text
//
// # Frames
//
// Requests and replies are frames of RESP, version 2 or 3. The proxy knows the request of each
// reply, also when many are due on one connection. So it can cut a connection between two replies,
// and put a reply of its own in its place in the order. A frame is passed on when it is complete.
//
// A connection that carries anything else is passed on as bytes from there on: TLS, inline
// commands, malformed or streamed frames, replication, and CLIENT REPLY. Faults of bytes work on
// it; those that need frames (CutReply, Reply, Answer, Replace and those of messages) do not, and
// fail the test rather than do nothing. If a server wants TLS, Use lets the proxy speak it in the
// client's place, so that it sees the frames.
package faultproxy
