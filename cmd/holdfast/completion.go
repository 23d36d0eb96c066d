package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/posener/complete"

	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/locks"
)

const (
	// completionTime bounds how long a key press waits for Redis.
	completionTime = time.Second
	mostCompleted  = 100    // names, which a person can still read
	mostLookedAt   = 20_000 // keys of each node, about
)

// lockNames returns names of locks that begin with the last word of a line. It is silent about all
// that goes wrong, because a person is typing.
func lockNames(line complete.Args) (names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	redis, err := serverFlags(line.Completed).Client(ctx)
	if err != nil {
		return nil
	}
	defer redis.Close()
	query := locks.Query{Pattern: literal.Replace(line.Last) + "*", Most: mostLookedAt}
	for lock, err := range locks.List(ctx, redis, query) {
		if err != nil || len(names) == mostCompleted {
			break
		}
		if isPlain(lock.Name) {
			names = append(names, lock.Name)
		}
	}
	return names
}

// literal makes a pattern for SCAN of what is no pattern.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// isPlain reports whether a shell reads a word as it is.
func isPlain(word string) bool {
	for i := range len(word) {
		if word[i] <= ' ' || word[i] > '~' || strings.IndexByte("'\"\\`$&|;()<>*?[]!#~", word[i]) >= 0 {
			return false
		}
	}
	return true
}

// serverFlags returns the flags among the words of a line that choose the server.
func serverFlags(words []string) (flags connect.Flags) {
	app, err := kong.New(&flags, kong.Exit(func(int) {}), kong.Writers(io.Discard, io.Discard))
	if err != nil {
		return flags
	}
	known := make(map[string]*kong.Flag)
	for _, f := range app.Model.Flags {
		known["--"+f.Name] = f
		known["-"+string(f.Short)] = f
	}
	var args []string
	for i := 0; i < len(words); i++ {
		name, _, joined := strings.Cut(words[i], "=")
		f := known[name]
		if f == nil || f.Name == "help" {
			continue
		}
		args = append(args, words[i])
		if !joined && !f.IsBool() && i+1 < len(words) {
			i++
			args = append(args, words[i])
		}
	}
	_, _ = app.Parse(args) // the rest counts
	return flags
}

// completions returns the writer for what may follow a line. bash ends a word at a colon, of which
// names of locks have many, and passes the part behind the last one as the second argument. It
// wants no more than that part.
func completions(w io.Writer) io.Writer {
	line := os.Getenv("COMP_LINE")
	if line == "" || len(os.Args) < 3 {
		return w
	}
	last := line[strings.LastIndexByte(line, ' ')+1:]
	before, ends := strings.CutSuffix(last, os.Args[2])
	if !ends || !strings.HasSuffix(before, ":") {
		return w
	}
	return cutter{w, []byte(before)}
}

// cutter leaves out how each line begins.
type cutter struct {
	io.Writer
	before []byte
}

// Write writes a line.
func (c cutter) Write(line []byte) (int, error) {
	_, err := c.Writer.Write(bytes.TrimPrefix(line, c.before))
	return len(line), err
}
