package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// process is one worker as the stage sees it. Only the stage's goroutine calls its methods.
type process struct {
	part   part
	cmd    *exec.Cmd
	stdin  *json.Encoder
	events io.Reader
	stderr bytes.Buffer
}

// start runs program as a worker with this part. The process is killed when ctx ends.
func start(ctx context.Context, program string, p part) (*process, error) {
	cmd := exec.CommandContext(ctx, program, "worker")
	cmd.WaitDelay = time.Second // for the pipes, after the process has ended
	w := &process{part: p, cmd: cmd}
	cmd.Stderr = &w.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start process %s: %w", p.Process, err)
	}
	w.stdin, w.events = json.NewEncoder(stdin), stdout
	w.tell(p)
	return w, nil
}

// tell sends something to the process. An error is ignored: it means that the process is gone,
// which is reported as its end.
func (w *process) tell(what any) {
	_ = w.stdin.Encode(what)
}

// kill ends the process at once, by SIGKILL where there are signals.
func (w *process) kill() { _ = w.cmd.Process.Kill() }

// follow reports the events of the process, waits for its end, and returns how it ended: nil for
// status 0.
func (w *process) follow(report func(event)) error {
	decoder := json.NewDecoder(w.events)
	var garbled error
	for garbled == nil {
		var e event
		if garbled = decoder.Decode(&e); garbled == nil {
			report(e)
		}
	}
	if errors.Is(garbled, io.EOF) || errors.Is(garbled, io.ErrUnexpectedEOF) {
		garbled = nil // the latter if it was killed in the middle of a line
	} else {
		w.kill() // it would block on a pipe that nobody reads
	}
	return errors.Join(garbled, w.cmd.Wait())
}

// lastWords returns what the process wrote to standard error. Call it after follow has returned.
func (w *process) lastWords() string { return strings.TrimSpace(w.stderr.String()) }
