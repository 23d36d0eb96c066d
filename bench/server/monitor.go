package server

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Monitor watches the commands that a server executes, on a connection of its own.
type Monitor struct {
	address string
	conn    *Conn
	done    chan Origins
}

// last is sent to the server when it has been watched for long enough.
const last = "holdfast-bench-last"

// Watch begins to watch. It slows the server down, so nothing is measured meanwhile.
func Watch(address string) (*Monitor, error) {
	conn, err := Dial(address)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Do("MONITOR"); err != nil {
		conn.Close()
		return nil, err
	}
	m := &Monitor{address: address, conn: conn, done: make(chan Origins, 1)}
	go m.read()
	return m, nil
}

func (m *Monitor) read() {
	o := Origins{clients: counts{}, scripts: counts{}}
	defer func() { m.done <- o }()
	if err := m.conn.conn.SetDeadline(time.Time{}); err != nil {
		return
	}
	for {
		line, err := m.conn.r.ReadString('\n')
		if err != nil || strings.HasSuffix(strings.TrimSpace(line), `"`+last+`"`) {
			return
		}
		o.count(line)
	}
}

// count counts a line, such as
//
//	+1700000000.123456 [0 127.0.0.1:50000] "evalsha" "…"
//	+1700000000.123457 [0 lua] "hset" "…"
func (o Origins) count(line string) {
	_, rest, ok := strings.Cut(line, " [")
	if !ok {
		return
	}
	origin, rest, ok := strings.Cut(rest, "] \"")
	if !ok {
		return
	}
	name, _, _ := strings.Cut(rest, "\"")
	name = strings.ToLower(name)
	switch {
	case own[name]:
	case strings.HasSuffix(origin, " lua"):
		o.scripts[name]++
	default:
		o.clients[name]++
	}
}

// Stop ends watching, and returns the counts until now. Commands may still be on their way, so Stop
// first waits until it has seen one last command.
func (m *Monitor) Stop() Origins {
	defer m.conn.Close()
	if conn, err := Dial(m.address); err == nil {
		_, err = conn.Do("ECHO", last)
		conn.Close()
		if err == nil {
			select {
			case o := <-m.done:
				return o
			case <-time.After(10 * time.Second):
			}
		}
	}
	m.conn.Close()
	return <-m.done
}

// Version returns the version of a server.
func Version(address string) (string, error) {
	conn, err := Dial(address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	info, err := conn.Do("INFO", "server")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if version, ok := strings.CutPrefix(strings.TrimSpace(line), "redis_version:"); ok {
			return version, nil
		}
	}
	return "", fmt.Errorf("INFO server has no version: %w", io.ErrUnexpectedEOF)
}
