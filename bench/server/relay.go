package server

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Delay makes the network to the server slow. From now on Clients is the address of a relay. It
// passes bytes on in both directions, each d after they arrived. All that is on the way waits at
// the same time, so the relay makes the way longer but not narrower. 0 changes nothing.
//
// Go's timers wake an idle process at whole milliseconds, so the faultproxy would be too coarse.
func (s *Server) Delay(d time.Duration) error {
	if d == 0 {
		return nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	s.relay = &relay{target: s.Address, listener: listener, lane: make(chan parcel, laneSize)}
	s.relay.delay.Store(int64(d))
	s.Clients = listener.Addr().String()
	go s.relay.accept()
	go s.relay.deliver()
	return s.adjust(d)
}

// adjust makes the relay wait as much less as it takes to wake up. A busy machine may need longer
// for a moment, so there is a limit.
func (s *Server) adjust(d time.Duration) error {
	near, err := ping(s.Address)
	if err != nil {
		return err
	}
	far, err := ping(s.Clients)
	if err != nil {
		return err
	}
	own := (far-near)/2 - d
	s.relay.delay.Store(int64(d - min(own, d/5)))
	return nil
}

// ping returns the median time of a command.
func ping(address string) (time.Duration, error) {
	conn, err := Dial(address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	took := make([]time.Duration, 50)
	for i := range took {
		sent := time.Now()
		if _, err := conn.Do("PING"); err != nil {
			return 0, err
		}
		took[i] = time.Since(sent)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// laneSize is how many parcels may be on the way before a relay stops to read.
const laneSize = 1 << 14

// relay stands between clients and a server.
type relay struct {
	target   string
	delay    atomic.Int64
	listener net.Listener
	lane     chan parcel // in the order in which the parcels are due
	readers  sync.WaitGroup
}

// parcel is bytes on their way. Without bytes it closes the connection.
type parcel struct {
	due   time.Time
	to    net.Conn
	bytes []byte
}

// accept connects clients until the listener is closed. Their connections end with the server.
func (r *relay) accept() {
	defer func() {
		r.readers.Wait()
		close(r.lane)
	}()
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.target)
		if err != nil {
			_ = client.Close() // the server is dead
			continue
		}
		r.readers.Go(func() { r.read(client, server) })
		r.readers.Go(func() { r.read(server, client) })
	}
}

func (r *relay) read(from, to net.Conn) {
	for buffer := make([]byte, 1<<16); ; {
		n, err := from.Read(buffer)
		due := time.Now().Add(time.Duration(r.delay.Load()))
		r.lane <- parcel{due, to, slices.Clone(buffer[:n])}
		if err != nil {
			return
		}
	}
}

// deliver passes on what is due. A thread of its own sleeps to the microsecond.
func (r *relay) deliver() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // without it, the sleep is less exact
	for p := range r.lane {
		if left := time.Until(p.due); left > 0 {
			sleep := unix.NsecToTimespec(int64(left))
			_ = unix.Nanosleep(&sleep, nil) // a signal may end it early
		}
		if len(p.bytes) == 0 {
			_ = p.to.Close()
		} else {
			_, _ = p.to.Write(p.bytes) // if it fails, the readers end as well
		}
	}
}
