package faultproxy

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// exchange is a request and its reply.
type exchange struct {
	words []string
	text  string // the words, with spaces between them
	own   []byte // the proxy's own, for a request that the server never sees; or nil
	sent  time.Time

	// The following is for the goroutine that passes replies on.
	frames   int  // how many have belonged to it so far
	replaced bool // the client got another reply
}

func newExchange(words []string, sent time.Time) *exchange {
	return &exchange{words: words, text: strings.Join(words, " "), sent: sent}
}

// is reports whether the request is that command.
func (e *exchange) is(command ...string) bool {
	return len(e.words) >= len(command) &&
		slices.EqualFunc(command, e.words[:len(command)], strings.EqualFold)
}

// verb returns how confirmations of the request begin, if each of its channels is confirmed instead
// of one reply.
func (e *exchange) verb() string {
	if verb := strings.ToLower(e.words[0]); confirms(verb) {
		return verb
	}
	return ""
}

// confirms reports whether a push or array that begins with this word reports a change of
// subscriptions.
func confirms(verb string) bool {
	kind, found := strings.CutSuffix(verb, "subscribe")
	return found && slices.Contains([]string{"", "p", "s", "un", "pun", "sun"}, kind)
}

// conversation matches replies to requests. Replies come in the order of the requests, and what the
// server sends unrequested comes in between.
type conversation struct {
	mu  sync.Mutex
	due []*exchange // guarded by mu; in the order of their replies

	// The following is for the goroutine that passes replies on.
	channels   map[string]map[string]struct{} // what is subscribed, by "", "p" and "s"
	messages   bool                           // RESP2, subscribed: messages are arrays
	monitoring bool                           // executed commands are reported as simple strings
}

// ask records that a reply to e will be due, after all others.
func (c *conversation) ask(e *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = append(c.due, e)
}

// next returns the exchange whose reply is due next, or nil.
func (c *conversation) next() *exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.due) == 0 {
		return nil
	}
	return c.due[0]
}

// over records that the next exchange has all its replies.
func (c *conversation) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due[0] = nil // it may be large
	c.due = c.due[1:]
}

// match returns the exchange that a frame from the server belongs to, or nil if it came
// unrequested.
func (c *conversation) match(f frame) *exchange {
	e := c.next()
	last := true
	switch words := c.unrequested(f, e); {
	case len(words) == 0:
		if e != nil {
			c.replied(e, f)
		}
	case confirms(words[0]):
		c.subscription(f, words)
		if e == nil || e.verb() != words[0] || len(e.words) > 1 &&
			!slices.Contains(e.words[1:], words[1]) {
			return nil // a slot has moved
		}
		last = e.frames+1 == len(e.words)-1
		if len(e.words) == 1 { // all channels
			last = len(c.channels[kindOf(words[0])]) == 0
		}
	default:
		return nil
	}
	if e == nil {
		return nil // such as the last error of a server that closes the connection
	}
	e.frames++
	if last {
		c.over()
	}
	return e
}

// unrequested returns the words of a frame that may not be a reply, or is no ordinary one. e is the
// exchange that is due.
func (c *conversation) unrequested(f frame, e *exchange) []string {
	switch f.kind() {
	case '+':
		// Such a report begins with the time.
		if c.monitoring && f.raw[f.body+1] >= '0' && f.raw[f.body+1] <= '9' {
			return []string{"monitor"}
		}
	case '>':
		if words := f.words(); len(words) > 1 || len(words) == 1 && !confirms(words[0]) {
			return words
		}
		return []string{"push"}
	case '*':
		if !c.messages && (e == nil || e.verb() == "") {
			return nil
		}
		words := f.words()
		if len(words) == 3 && confirms(words[0]) || len(words) > 2 &&
			slices.Contains([]string{"message", "pmessage", "smessage"}, words[0]) {
			return words
		}
	}
	return nil
}

// replied records what a reply to e changes.
func (c *conversation) replied(e *exchange, f frame) {
	if f.kind() == '-' {
		return
	}
	if e.is("MONITOR") {
		c.monitoring = true
	}
	if e.is("RESET") {
		c.channels, c.messages, c.monitoring = nil, false, false
	}
}

// subscription records a confirmation.
func (c *conversation) subscription(f frame, words []string) {
	kind := kindOf(words[0])
	if c.channels == nil {
		c.channels = make(map[string]map[string]struct{})
	}
	if strings.HasSuffix(words[0], "unsubscribe") {
		delete(c.channels[kind], words[1])
	} else {
		if c.channels[kind] == nil {
			c.channels[kind] = make(map[string]struct{})
		}
		c.channels[kind][words[1]] = struct{}{}
	}
	total := 0
	for _, channels := range c.channels {
		total += len(channels)
	}
	c.messages = f.kind() == '*' && total > 0
}

// kindOf returns "" for channels, "p" for patterns and "s" for sharded channels.
func kindOf(verb string) string {
	kind, _ := strings.CutSuffix(verb, "subscribe")
	kind, _ = strings.CutSuffix(kind, "un")
	return kind
}
