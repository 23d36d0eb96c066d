// Package faultproxy is a proxy between a Redis client and a server that plays the faults of a network, and those of a server
// that cannot be had on demand, in a test. A [Proxy] stands before one server, a [Network] before all that a client dials.
//
// A proxy starts without any fault; each method adds or ends one at once, also on the connections that exist:
//
//	HoldRequests, HoldReplies, BlackHole, BlackHoleNew    keep everything for later, one way or both
//	DropRequests, DropReplies                             lose it, one way, while the connection stays up
//	HoldMessages, DropMessages                            the same for pub/sub only; commands go on
//	Delay, DelayRequests, DelayReplies                    make it late
//	Reset, Refuse                                         break connections off, let nobody in
//	CutReply, Answer, Replace                             what becomes of the next requests with a given text
//
// # Frames
//
// Requests and replies are frames of RESP, version 2 or 3, and each reply is known by its request, also when many are due on
// one connection. So a connection can be cut between a reply and the next, and an answer of the proxy's own takes its place in
// the order of replies. A frame is passed on when it is complete.
//
// A connection on which something else is said is passed on as bytes from there on: TLS, inline commands, malformed or
// streamed frames, replication, and CLIENT REPLY. Faults of bytes work on it; those that need frames (CutReply, Answer,
// Replace and the ones for messages) do not, and fail the test rather than doing nothing. To see the frames of a server that
// wants TLS, have the proxy speak TLS in the client's place: [Secure], or Use, which does so by itself.
package faultproxy
