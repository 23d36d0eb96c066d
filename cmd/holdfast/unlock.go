package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/cmd/holdfast/internal/status"
	"holdfast/cmd/holdfast/internal/tty"
	"holdfast/cmd/holdfast/internal/view"
	"holdfast/internal/printable"
)

// unlockCommand is "holdfast unlock".
type unlockCommand struct {
	Name string `arg:"" help:"Name of the lock."`

	Owner string `xor:"whose" placeholder:"ID" help:"Release it if this owner, CLIENT:NUMBER, holds it."`
	Force bool   `xor:"whose" help:"Release it whoever holds it, and of all readers."`
	Yes   bool   `short:"y" help:"Do not ask. Needed without a terminal."`

	connect.Flags
}

// Help returns the text that "holdfast unlock --help" shows.
func (unlockCommand) Help() string {
	return `Takes all levels from an owner, and wakes those that wait. An owner that lives
goes on until its next renewal, 10 s at most by default, so see first that it is
dead: holdfast inspect NAME

  holdfast unlock order:42 --owner 8743c9c0-0795-4907-87fd-6c719a6b4586:54

The exit status is 1 if the lock is not held so.`
}

// Validate refuses what cannot work.
func (c unlockCommand) Validate() error {
	if c.Owner == "" && !c.Force {
		return errors.New("want --owner ID, or --force for whoever holds it; holdfast inspect NAME " +
			"shows the owners")
	}
	return nil
}

// Run releases the lock.
func (c unlockCommand) Run(ctx context.Context) error {
	asks := !c.Yes
	if asks && !tty.Are(os.Stdin, os.Stderr) {
		return status.New(status.Usage, errors.New("no terminal to ask on: confirm with --yes"))
	}
	redis, err := c.Client(ctx)
	if err != nil {
		return err
	}
	defer redis.Close()
	lock, err := locks.Inspect(ctx, redis, c.Name)
	if err != nil {
		return withStatus(err)
	}
	if len(c.holders(lock)) == 0 {
		return c.notHeld(lock)
	}
	question := fmt.Sprintf("%s: %s\nRelease it? [y/N] ", printable.Text(c.Name), c.line(lock))
	if asks && !confirm(ctx, question) {
		return status.New(status.Failed, errors.New("not released"))
	}
	before, refusal, err := locks.Unlock(ctx, redis, lock, c.Owner)
	var changed *locks.ChangedError
	switch {
	case errors.As(err, &changed):
		return c.notHeld(changed.Now)
	case err != nil:
		return withStatus(err)
	}
	if refusal != "" {
		status.Print(os.Stderr, "waiters could not be woken, and look by themselves within 5 s: "+
			refusal)
	}
	_, err = fmt.Fprintf(os.Stdout, "released %s, which was %s\n", printable.Text(c.Name),
		c.line(before))
	return err
}

// holders returns those that lose the lock.
func (c unlockCommand) holders(lock locks.Lock) (all []locks.Holder) {
	for _, h := range lock.Holders {
		if c.Force || h.Owner == c.Owner {
			all = append(all, h)
		}
	}
	return all
}

// notHeld returns the error that says who holds the lock instead.
func (c unlockCommand) notHeld(lock locks.Lock) error {
	const most = 10
	text := fmt.Sprintf("%q is not held by %s", c.Name, c.Owner)
	if c.Force {
		text = fmt.Sprintf("%q was not released, because it has changed hands", c.Name)
	}
	switch {
	case lock.Holding() == 0:
		text = fmt.Sprintf("%q is free", c.Name)
	case !strings.Contains(c.Owner, ":") && !c.Force:
		text += ": an owner is CLIENT:NUMBER"
	}
	var b strings.Builder
	b.WriteString(text)
	for i, h := range lock.Holders {
		if i == most {
			b.WriteString("\n  and more: see holdfast inspect")
			break
		}
		b.WriteString("\n  held by " + printable.Short(h.Owner))
		if h.Client.Known() {
			b.WriteString(", " + view.Who(h.Owner, h.Client))
		}
	}
	return status.New(status.Failed, errors.New(b.String()))
}

// line returns the lock in one line, with the holders that lose it.
func (c unlockCommand) line(lock locks.Lock) string {
	lock.Holders = c.holders(lock)
	return view.Line(lock, 0)
}

// confirm asks on the terminal, and reports whether the answer was yes.
func confirm(ctx context.Context, question string) bool {
	fmt.Fprint(os.Stderr, question)
	answers := make(chan string, 1)
	go func() { // it ends with the program, if the user never answers
		answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answers:
		return answer == "y" || answer == "yes"
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr)
		return false
	}
}
