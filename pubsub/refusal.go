package pubsub

import (
	"slices"
	"strings"
)

// redirects reports whether an error reply means that another node serves the channel.
func redirects(reply error) bool { return startsWith(reply, "MOVED", "ASK") }

// startsWith reports whether the code of an error reply is one of codes.
func startsWith(reply error, codes ...string) bool {
	code, _, _ := strings.Cut(reply.Error(), " ")
	return slices.Contains(codes, code)
}

// advice returns what an operator can do about rejected channels.
func advice(reply error, channels []string, sharded bool) string {
	text := reply.Error()
	switch {
	case !strings.HasPrefix(text, "NOPERM"):
		return "read the error"
	case strings.Contains(text, "channel"):
		return "grant &pattern in the ACL, with a pattern that matches, such as &" +
			strings.Join(channels, " &")
	case sharded:
		return "grant +ssubscribe in the ACL"
	}
	return "grant +subscribe in the ACL"
}

// warnings is the set of channels whose rejection was logged. Hub.mu guards it.
type warnings map[string]struct{}

// mostWarnings bounds the set, because there may be any number of channels.
const mostWarnings = 1000

// first adds the channel to the set and reports whether the channel was new. It clears a full set
// first, because a repeated warning is better than growing memory.
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
