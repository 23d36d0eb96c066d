package faultproxy

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFaultsOfBytesWorkWithoutFrames(t *testing.T) {
	address, _ := echo(t)
	p := Start(t, address)
	c := dialTo(t, p.Addr())
	c.say(t, "a frame")
	c.hear(t, "a frame")
	read := func(want string) {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(soon)))
		got := make([]byte, len(want))
		_, err := io.ReadFull(c.replies.from, got)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	c.raw(t, "\x16\x03\x01 no frame")
	read("\x16\x03\x01 no frame")
	p.HoldReplies()
	c.raw(t, "more")
	c.silent(t)
	require.Equal(t, 1, p.Reset())
	c.broken(t)
}

func TestFaultThatNeedsFramesFailsTheTestWithoutThem(t *testing.T) {
	for what, ask := range map[string]func(*Proxy){
		"cut":           func(p *Proxy) { p.CutReply("x", 1) },
		"reply":         func(p *Proxy) { p.Reply("x", 1, Loading) },
		"replace":       func(p *Proxy) { p.Replace("x", 1, Loading) },
		"hold messages": (*Proxy).HoldMessages,
		"drop messages": (*Proxy).DropMessages,
	} {
		for when, frames := range map[string]string{"inline": "PING\r\n", "TLS": "\x16\x03\x01",
			"CLIENT REPLY": request("client reply OFF"), "PSYNC": request("PSYNC ? -1")} {
			t.Run(what+" on a connection with "+when, func(t *testing.T) {
				address, got := echo(t)
				said := newComplaints(t)
				p := Start(said, address)
				c := dialTo(t, p.Addr())
				c.raw(t, frames)
				heard(t, got)
				require.Empty(t, said.said)
				ask(p)
				require.Contains(t, heard(t, said.said), "needs frames")
			})
			t.Run(what+" before "+when, func(t *testing.T) {
				address, got := echo(t)
				said := newComplaints(t)
				p := Start(said, address)
				ask(p)
				require.Empty(t, said.said)
				dialTo(t, p.Addr()).raw(t, frames)
				heard(t, got)
				require.Contains(t, heard(t, said.said), "needs frames")
			})
		}
	}
}
