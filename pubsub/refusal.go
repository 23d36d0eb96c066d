package pubsub

import (
	"errors"
	"strings"

	"github.com/redis/rueidis"
)

// verdict is what an error reply means for the channel that was asked for.
type verdict int

const (
	redirected verdict = iota // another node serves the channel
	later                     // the server cannot tell at the moment
	refused                   // the server does not want to
)

// judge reads an error reply.
func judge(reply error) verdict {
	code, _, _ := strings.Cut(reply.Error(), " ")
	switch code {
	case "MOVED", "ASK":
		return redirected
	case "CLUSTERDOWN", "TRYAGAIN", "LOADING", "BUSY", "MASTERDOWN":
		return later
	}
	return refused
}

// refusal returns the server's own objection inside err, nil when err is no
// reply or one that says "later".
func refusal(err error) error {
	var reply *rueidis.RedisError
	if errors.As(err, &reply) && judge(reply) == refused {
		return reply
	}
	return nil
}

// advice says what an operator can do about a refusal of channels.
func advice(reply error, channels []string, sharded bool) string {
	text := reply.Error()
	switch {
	case !strings.HasPrefix(text, "NOPERM"):
		return "see the error"
	case strings.Contains(text, "channel"):
		return "add the ACL rule &channel-pattern with a pattern that matches, such as " + patterns(
			channels,
		)
	case sharded:
		return "add the ACL rule +ssubscribe"
	default:
		return "add the ACL rule +subscribe"
	}
}

// warnings are the channels whose refusal was logged. Hub.mu guards them.
type warnings map[string]struct{}

// mostWarnings bounds the set: channels are named after what is locked, and
// there may be any number of them.
const mostWarnings = 1000

// first says whether the channel was not in the set, and adds it. When the set
// is full it starts anew: a line that repeats is better than memory that grows.
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
