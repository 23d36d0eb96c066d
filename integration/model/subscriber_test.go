//go:build model

package model

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// subscriber is a connection that listens, and the messages that have arrived on it.
type subscriber struct {
	conn     net.Conn
	replies  *bufio.Reader
	messages []published
}

// published is a message that a subscriber has received.
type published struct{ channel, text string }

// listen returns a subscriber without subscriptions.
func listen(t *testing.T, s *redistest.Server) *subscriber {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.Addr(), 5*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(5*time.Minute)))
	return &subscriber{conn: conn, replies: bufio.NewReader(conn)}
}

// subscribe begins or ends subscriptions, and returns when the server has confirmed them.
func (s *subscriber) subscribe(begin bool, channels ...string) error {
	verb := map[bool]string{true: "SUBSCRIBE", false: "UNSUBSCRIBE"}[begin]
	if err := s.send(append([]string{verb}, channels...)...); err != nil {
		return err
	}
	for range channels {
		if err := s.read(strings.ToLower(verb)); err != nil {
			return err
		}
	}
	return nil
}

// ping asks the server for a reply after all messages that it has sent, and pong reads them. To a
// connection that does not listen the server replies otherwise, and no message comes.
func (s *subscriber) ping() error { return s.send("PING") }

func (s *subscriber) pong() error { return s.read("pong") }

// send sends a command.
func (s *subscriber) send(words ...string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(word), word)
	}
	_, err := io.WriteString(s.conn, text.String())
	return err
}

// read reads messages up to a reply of a kind.
func (s *subscriber) read(kind string) error {
	for {
		texts, err := s.reply()
		switch {
		case err != nil:
			return err
		case texts[0] == "message":
			s.messages = append(s.messages, published{texts[1], texts[2]})
		case strings.EqualFold(texts[0], kind):
			return nil
		default:
			return fmt.Errorf("the reply is not %s: %q", kind, texts)
		}
	}
}

// reply reads one reply: texts, or an array of texts and numbers.
func (s *subscriber) reply() ([]string, error) {
	line, err := s.replies.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSpace(line)
	switch line[0] {
	case '+', ':':
		return []string{line[1:]}, nil
	case '-':
		return nil, fmt.Errorf("the server refuses: %s", line)
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil {
		return nil, err
	}
	if line[0] == '*' {
		var all []string
		for range n {
			texts, err := s.reply()
			if err != nil {
				return nil, err
			}
			all = append(all, texts...)
		}
		return all, nil
	}
	text := make([]byte, max(n, 0)+2)
	if n < 0 {
		return []string{""}, nil
	}
	_, err = io.ReadFull(s.replies, text)
	return []string{string(text[:n])}, err
}
