package worker

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

var tasks = map[string]func(json.RawMessage) (any, error){}

// Handle registers what a worker does for a task. Tasks of one worker run one after another. It
// must be called before Serve, mostly in an init function.
func Handle[In, Out any](task string, do func(In) (Out, error)) {
	tasks[task] = func(raw json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, err
		}
		return do(in)
	}
}

// Requested reports whether this process was started as a worker: then it must call Serve and
// nothing else.
func Requested() bool { return os.Getenv(marker) != "" }

// Serve does tasks until the parent closes the standard input. Other output would disturb the
// replies, so standard output is standard error from here on.
func Serve() {
	out := os.Stdout
	os.Stdout = os.Stderr
	lines := make(chan []byte)
	go func() {
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				os.Exit(0) // even while a task hangs
			}
			lines <- line
		}
	}()
	for line := range lines {
		if _, err := out.Write(append(reply(line), '\n')); err != nil {
			os.Exit(1)
		}
	}
}

func reply(line []byte) []byte {
	raw, err := json.Marshal(do(line))
	if err != nil {
		raw, _ = json.Marshal(response{Error: err.Error()})
	}
	return raw
}

func do(line []byte) (r response) {
	var q request
	if err := json.Unmarshal(line, &q); err != nil {
		return response{Error: err.Error()}
	}
	task := tasks[q.Task]
	if task == nil {
		return response{Error: fmt.Sprintf("there is no task %q", q.Task)}
	}
	out, err := task(q.In)
	if err == nil {
		r.Out, err = json.Marshal(out)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}
