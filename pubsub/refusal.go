package pubsub

import "strings"

// class is what an error reply means for the channel that was asked for.
type class int

const (
	redirected class = iota // another node serves the channel
	later                   // the server cannot tell at the moment
	refused                 // the server refuses the channel
)

// classify returns the class of an error reply.
func classify(reply error) class {
	code, _, _ := strings.Cut(reply.Error(), " ")
	switch code {
	case "MOVED", "ASK":
		return redirected
	case "CLUSTERDOWN", "TRYAGAIN", "LOADING", "BUSY", "MASTERDOWN":
		return later
	}
	return refused
}

// advice returns what an operator can do about a refusal of channels.
func advice(reply error, channels []string, sharded bool) string {
	text := reply.Error()
	switch {
	case !strings.HasPrefix(text, "NOPERM"):
		return "see the error"
	case strings.Contains(text, "channel"):
		return "add the ACL rule &channel-pattern with a pattern that matches, such as &" +
			strings.Join(channels, " &")
	case sharded:
		return "add the ACL rule +ssubscribe"
	default:
		return "add the ACL rule +subscribe"
	}
}

// warnings is the set of channels whose refusal was logged. Hub.mu guards it.
type warnings map[string]struct{}

// mostWarnings bounds the set: channels are named after what is locked, and there may be any number
// of them.
const mostWarnings = 1000

// first adds the channel to the set and reports whether it was new. A full set is cleared first: a
// warning that repeats is better than memory that grows.
func (w warnings) first(channel string) bool {
	if _, ok := w[channel]; ok {
		return false
	}
	if len(w) >= mostWarnings {
		clear(w)
	}
	w[channel] = struct{}{}
	return true
}
