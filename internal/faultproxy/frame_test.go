package faultproxy

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// frames has one of each kind, as servers send them.
var frames = []string{
	"+OK\r\n", "+\r\n", "-ERR no\r\n", ":-12\r\n", "_\r\n", "#t\r\n", ",3.25\r\n", ",inf\r\n",
	"(3492890328409238509324850943850943825024385\r\n",
	"$5\r\nhello\r\n", "$0\r\n\r\n", "$-1\r\n", "$6\r\n\r\n\r\n$1\r\n", "=7\r\ntxt:abc\r\n",
	"!5\r\nERR x\r\n",
	"*0\r\n", "*-1\r\n", "*3\r\n:1\r\n$-1\r\n*2\r\n+a\r\n*0\r\n", "~2\r\n+a\r\n+b\r\n",
	"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n",
	">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n", ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n",
	"|1\r\n+ttl\r\n:3600\r\n*2\r\n:1\r\n|1\r\n+a\r\n+b\r\n:2\r\n", "|0\r\n+OK\r\n",
	"*2\r\n>2\r\n+invalidate\r\n*1\r\n+k\r\n+a\r\n+b\r\n", // Redis 6 while a key expires
	"+" + strings.Repeat("long", 1<<16) + "\r\n",
	"$3000000\r\n" + strings.Repeat("abc", 1000000) + "\r\n",
	strings.Repeat("*1\r\n", 10000) + "+deep\r\n",
}

func TestEachFrameIsReadWithWhatItContainsAndNoMore(t *testing.T) {
	for _, between := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r },
		iotest.HalfReader} {
		r := newFrameReader(between(strings.NewReader(strings.Join(frames, ""))), false)
		for _, want := range frames {
			f, err := r.next()
			require.NoError(t, err)
			require.False(t, f.opaque, "%.50q", f.raw)
			require.Equal(t, want, string(f.raw))
		}
		_, err := r.next()
		require.Equal(t, io.EOF, err)
	}
}

func TestIncompleteFrameIsAnError(t *testing.T) {
	for _, whole := range frames {
		for _, size := range []int{1, len(whole) / 2, len(whole) - 1} {
			f, err := newFrameReader(strings.NewReader(whole[:size]), false).next()
			require.Equal(t, io.ErrUnexpectedEOF, err, "%.50q", f.raw)
		}
	}
}

func TestMalformedFrameAndWhatFollowsAreBytes(t *testing.T) {
	for _, malformed := range []string{
		"hello\r\n", "\x16\x03\x01", "\r\n", "+OK\n", "+a\rb\r\n", "$x\r\n", "$-2\r\n", "~-1\r\n",
		"$999999999999\r\n", "*536870913\r\n", "$\r\n",
		"$1\r\nab\r\n", "*1\r\nhello\r\n", "*99999999999999999999\r\n", "$?\r\n;1\r\na\r\n;0\r\n",
		"*?\r\n.\r\n",
		"*536870912\r\n*536870912\r\n*536870912\r\n", "$" + strings.Repeat("1", 1<<17) + "\r\n",
	} {
		r := newFrameReader(strings.NewReader("+OK\r\n"+malformed+"+OK\r\n"), false)
		f, err := r.next()
		require.NoError(t, err)
		require.False(t, f.opaque)
		require.Equal(t, "+OK\r\n", string(f.raw))
		require.Equal(t, malformed+"+OK\r\n", rest(t, r), "%.50q", malformed)
	}
}

// rest returns all that is left, which must be bytes.
func rest(t *testing.T, r *frameReader) string {
	t.Helper()
	var all []byte
	for {
		f, err := r.next()
		if errors.Is(err, io.EOF) {
			return string(all)
		}
		require.NoError(t, err)
		require.True(t, f.opaque, "%.50q", f.raw)
		all = append(all, f.raw...)
	}
}

func TestRequestsAreArraysOfStrings(t *testing.T) {
	r := newFrameReader(strings.NewReader("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*0\r\n"), true)
	f, err := r.next()
	require.NoError(t, err)
	require.Equal(t, []string{"GET", "k"}, f.words())
	f, err = r.next()
	require.NoError(t, err)
	require.Empty(t, f.words())
	for _, other := range []string{"PING\r\n", "$4\r\nPING\r\n", "*1\r\n+PING\r\n",
		"*1\r\n*1\r\n$1\r\na\r\n"} {
		require.Equal(t, other, rest(t, newFrameReader(strings.NewReader(other), true)))
	}
}

func TestWordsAreTheFirstElementsOfAPush(t *testing.T) {
	for raw, want := range map[string][]string{
		">3\r\n$7\r\nmessage\r\n+c\r\n$-1\r\n":                        {"message", "c", ""},
		"*4\r\n$1\r\na\r\n:12\r\n_\r\n=5\r\ntxt:b\r\n":                {"a", "12", "", "txt:b"},
		">2\r\n+invalidate\r\n*1\r\n+k\r\n":                           {"invalidate"},
		"|1\r\n+a\r\n*1\r\n+b\r\n*2\r\n$1\r\nx\r\n$4\r\n\r\n\r\n\r\n": {"x", "\r\n\r\n"},
		"+OK\r\n": nil, "*0\r\n": nil, "*-1\r\n": nil, "%1\r\n+a\r\n+b\r\n": nil,
	} {
		f, err := newFrameReader(strings.NewReader(raw), false).next()
		require.NoError(t, err)
		require.Equal(t, want, f.words(), "%q", raw)
	}
}

// The reader does not panic, whatever the bytes are, and it loses, adds or swallows none. It finds
// the same frame whatever follows.
func FuzzFrames(f *testing.F) {
	for _, frame := range frames {
		if len(frame) < 1000 {
			f.Add([]byte(frame+frame), false)
		}
	}
	f.Add([]byte(request("SET k v")+request("GET k")), true)
	f.Add([]byte("*1\r\nhello"), true)
	f.Fuzz(func(t *testing.T, data []byte, requests bool) {
		r := newFrameReader(bytes.NewReader(data), requests)
		var all []byte
		for {
			f, err := r.next()
			all = append(all, f.raw...)
			if err != nil {
				require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF),
					"%v", err)
				break
			}
			require.NotEmpty(t, f.raw)
			if f.opaque {
				continue
			}
			_ = f.words()
			for _, more := range []string{"", "\r\n", "$5\r\n"} {
				again, err := newFrameReader(io.MultiReader(bytes.NewReader(f.raw),
					strings.NewReader(more)), requests).next()
				require.NoError(t, err)
				require.Equal(t, f, again)
			}
		}
		require.Equal(t, string(data), string(all))
	})
}
