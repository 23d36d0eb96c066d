package transport

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// fake is a server that replies to CLUSTER SLOTS with whatever a test wants.
type fake struct {
	port  int
	asked atomic.Int32
	reply atomic.Pointer[any]
	hang  atomic.Pointer[chan struct{}] // while set, replies wait until it is closed
}

type (
	list    []any  // an array reply
	refusal string // an error reply
)

// startFake returns a fake and the slot map that reads its replies.
func startFake(t *testing.T, reply any) (*fake, *cluster) {
	t.Helper()
	f := new(fake)
	f.set(reply)
	s, err := server.NewServer("127.0.0.1:0")
	require.NoError(t, err)
	f.port = s.Addr().Port
	ok := func(p *server.Peer, _ string, _ []string) { p.WriteOK() }
	require.NoError(t, s.Register("CLIENT", ok))
	require.NoError(t, s.Register("PING", ok))
	require.NoError(t, s.Register("CLUSTER", func(p *server.Peer, _ string, _ []string) {
		f.asked.Add(1)
		if hang := f.hang.Load(); hang != nil {
			<-*hang
		}
		write(p, *f.reply.Load())
	}))
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{
			s.Addr().String(),
		}, AlwaysRESP2: true, DisableCache: true, ForceSingleClient: true,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		client.Close()
		s.Close()
	})
	return f, &cluster{client: client}
}

// set changes the reply.
func (f *fake) set(reply any) { f.reply.Store(&reply) }

// pause makes replies wait until the returned function is called, or the test ends.
func (f *fake) pause(t *testing.T) (resume func()) {
	hang := make(chan struct{})
	f.hang.Store(&hang)
	resume = sync.OnceFunc(func() {
		f.hang.Store(nil)
		close(hang)
	})
	t.Cleanup(resume)
	return resume
}

// write sends a reply. nil is the null of the protocol.
func write(p *server.Peer, reply any) {
	switch r := reply.(type) {
	case nil:
		p.WriteNull()
	case int:
		p.WriteInt(r)
	case string:
		p.WriteBulk(r)
	case refusal:
		p.WriteError(string(r))
	case list:
		p.WriteLen(len(r))
		for _, element := range r {
			write(p, element)
		}
	default:
		panic(fmt.Sprintf("no reply: %T", reply))
	}
}
