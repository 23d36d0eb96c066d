package faultproxy

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestEachFrameIsReadWithWhatItContainsAndNoMore(t *testing.T) {
	frames := []string{
		"+OK\r\n", "+\r\n", "-ERR no\r\n", ":-12\r\n", "_\r\n", "#t\r\n", ",3.25\r\n",
		"(3492890328409238509324850943850943825024385\r\n", "$5\r\nhello\r\n", "$0\r\n\r\n",
		"$-1\r\n", "$6\r\n\r\n\r\n$1\r\n", "=7\r\ntxt:abc\r\n", "!5\r\nERR x\r\n", "*0\r\n",
		"*-1\r\n", "*3\r\n:1\r\n$-1\r\n*2\r\n+a\r\n*0\r\n", "~2\r\n+a\r\n+b\r\n",
		"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n", ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n",
		"|1\r\n+ttl\r\n:3600\r\n*2\r\n:1\r\n|1\r\n+a\r\n+b\r\n:2\r\n", "|0\r\n+OK\r\n",
		"*2\r\n>2\r\n+invalidate\r\n*1\r\n+k\r\n+a\r\n+b\r\n", // Redis 6 while a key expires
		"$3000000\r\n" + strings.Repeat("abc", 1000000) + "\r\n",
		strings.Repeat("*1\r\n", 10000) + "+deep\r\n",
	}
	r := newFrameReader(iotest.HalfReader(strings.NewReader(strings.Join(frames, ""))), false)
	for _, want := range frames {
		f, err := r.next()
		require.NoError(t, err)
		require.False(t, f.opaque, "%.50q", f.raw)
		require.Equal(t, want, string(f.raw))
	}
	_, err := r.next()
	require.Equal(t, io.EOF, err)
}
