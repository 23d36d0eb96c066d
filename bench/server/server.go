// Package server starts Redis servers for a benchmark, and reads their statistics.
package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"holdfast/bench/worker"
)

// Server is a redis-server on a free port of the loopback interface that keeps nothing on disk.
type Server struct {
	Address string // for the benchmark's own commands
	Clients string // for the clients that are measured

	cmd   *exec.Cmd
	ended chan struct{}
	dir   string
	relay *relay // nil without Delay
}

// Start starts a server, and returns when it replies. core is the only CPU it may use;
// worker.AnyCore is all of them. The options are those of the command line. The server ends with
// Stop, and with this process however that ends.
func Start(ctx context.Context, core int, options ...string) (*Server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("there is no redis-server on PATH: install one")
	}
	// Another process may take the port in between: then the server does not start, and another
	// port is tried.
	for range 5 {
		var s *Server
		s, err = launch(ctx, path, core, options)
		if err == nil {
			return s, nil
		}
	}
	return nil, err
}

func launch(ctx context.Context, path string, core int, options []string) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = listener.Close() // only the port is needed

	dir, err := os.MkdirTemp("", "holdfast-bench")
	if err != nil {
		return nil, err
	}
	s := &Server{Address: address, Clients: address, dir: dir, ended: make(chan struct{})}
	var log bytes.Buffer
	options = append([]string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly",
		"no", "--dir", dir}, options...)
	s.cmd = exec.Command(path, options...)
	s.cmd.Stdout, s.cmd.Stderr = &log, &log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

	started := make(chan error)
	go func() {
		// Both the affinity and the death signal belong to the thread that forks, so it must live
		// as long as the server.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.ended)
		undo, err := worker.Pin(core)
		if err == nil {
			err = s.cmd.Start()
			undo()
		}
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // it is killed in the end
		}
	}()
	if err := <-started; err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("cannot run %s: %w", path, err)
	}
	for {
		if conn, err := Dial(s.Address); err == nil {
			_, err = conn.Do("PING")
			conn.Close()
			if err == nil {
				return s, nil
			}
		}
		select {
		case <-ctx.Done():
			s.Stop()
			return nil, ctx.Err()
		case <-s.ended:
			_ = os.RemoveAll(dir)
			return nil, fmt.Errorf("%s ended at once: %s", path, log.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Hang stops the server like a machine that hangs: connections stay open, and nothing replies.
func (s *Server) Hang() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume ends Hang.
func (s *Server) Resume() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

// Stop kills the server, and waits until it is gone. It may be called again.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill() // fails if it is dead already
	<-s.ended
	_ = os.RemoveAll(s.dir)
	if s.relay != nil {
		_ = s.relay.listener.Close() // it may be closed already
	}
}
