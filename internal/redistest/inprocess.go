package redistest

import (
	"errors"
	"net"
	"os"
	"strconv"

	"holdfast/internal/inprocess"
)

// inProcess is the backend that is no real Redis, but the server of package rlocktest, on a port.
// Tests that need nothing else run on it without the build tag redis, and so show that users may
// rely on that server in their own tests.
type inProcess struct {
	settings *settings
	server   *inprocess.Server
	listener net.Listener
	ended    chan struct{} // closed when the server has ended
}

// errInProcess reports a test that needs a real server.
var errInProcess = errors.New("the in-process server cannot do this, and the test needs a real " +
	"Redis: run it with go test -tags redis, and give its file that build tag")

func (p *inProcess) Launch(port int) error {
	if s := p.settings; len(s.args) > 0 || s.tls != nil || s.sentinel || s.clusterNode {
		return errInProcess
	}
	server, err := inprocess.New()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		server.Close()
		return err
	}
	p.server, p.listener, p.ended = server, listener, make(chan struct{})
	go func() {
		defer close(p.ended)
		server.Serve(listener)
	}()
	return nil
}

func (p *inProcess) Stopped() <-chan struct{} { return p.ended }

func (p *inProcess) Owns(processID string) bool { return processID == strconv.Itoa(os.Getpid()) }

func (p *inProcess) Kill() error {
	if p.server == nil {
		return nil
	}
	err := p.listener.Close()
	<-p.ended
	p.server.Close()
	p.server = nil
	return err
}

func (p *inProcess) Remove() error  { return p.Kill() }
func (p *inProcess) Isolate() error { return p.Pause() }
func (p *inProcess) Rejoin() error  { return p.Resume() }

func (p *inProcess) Pause() error {
	p.server.Pause()
	return nil
}

func (p *inProcess) Resume() error {
	if p.server != nil {
		p.server.Resume()
	}
	return nil
}

func (p *inProcess) Output() string { return "" }
