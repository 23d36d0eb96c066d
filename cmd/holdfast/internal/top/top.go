// Package top watches locks live, on the whole terminal.
//
//	top.go     runs it, and asks the server; never while keys wait
//	model.go   what it knows, and what keys and answers change
//	rows.go    the rows of the table: their order, and what changed
//	screen.go  what is shown
package top

import (
	"context"
	"errors"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/redis/rueidis"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/cmd/holdfast/internal/tty"
)

// Options are the options of [Run].
type Options struct {
	Server   string        // its name, for the header
	Pattern  string        // of names, as for SCAN; "" for all
	Interval time.Duration // between the end of a scan and the next one
}

// Run shows the locks of a server until the user quits or ctx ends, and leaves the terminal as it
// was.
func Run(ctx context.Context, redis rueidis.Client, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go endWithTerminal(ctx, cancel, o.Interval)
	m := newModel(server{ctx, redis, o.Pattern}, o)
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// endWithTerminal calls end once the terminal is gone. Where SIGHUP is ignored, nobody else does.
func endWithTerminal(ctx context.Context, end func(), interval time.Duration) {
	for ctx.Err() == nil {
		if !tty.Are(os.Stdin) {
			end()
		}
		time.Sleep(interval)
	}
}

// The answers of the server. Each question runs beside the program, which goes on meanwhile.
type (
	scanned struct {
		all  []locks.Lock
		at   time.Time
		took time.Duration
		err  error
	}
	inspected struct {
		lock locks.Lock
		at   time.Time
		err  error
	}
	unlocked struct {
		before  locks.Lock
		refusal string
		err     error
	}
)

// asker asks the server.
type asker interface {
	scan() tea.Msg
	inspect(name string) tea.Msg
	unlock(lock locks.Lock) tea.Msg
}

// server asks a Redis. Package locks bounds each command.
type server struct {
	ctx     context.Context //nolint:containedctx // Bubble Tea's commands have none
	redis   rueidis.Client
	pattern string
}

func (s server) scan() tea.Msg {
	a := scanned{at: time.Now()}
	for lock, err := range locks.List(s.ctx, s.redis, locks.Query{Pattern: s.pattern}) {
		if err != nil {
			a.err = err
			break
		}
		a.all = append(a.all, lock)
	}
	a.took = time.Since(a.at)
	return a
}

func (s server) inspect(name string) tea.Msg {
	lock, err := locks.Inspect(s.ctx, s.redis, name)
	return inspected{lock, time.Now(), err}
}

func (s server) unlock(lock locks.Lock) tea.Msg {
	before, refusal, err := locks.Unlock(s.ctx, s.redis, lock, "")
	return unlocked{before, refusal, err}
}
