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
	Name string `arg:"" predictor:"lock" help:"Name of the lock."`

	Owner string `xor:"whose" placeholder:"ID" help:"Release the lock only if this owner holds it. ID is CLIENT:NUMBER, as holdfast inspect prints it."`
	Force bool   `xor:"whose" help:"Release the lock whoever holds it, including all readers."`
	Yes   bool   `short:"y" help:"Do not ask for confirmation. Required without a terminal."`

	connect.Flags
}

// Help returns the text that "holdfast unlock --help" shows.
func (unlockCommand) Help() string {
	return `Releases the lock completely and wakes the next waiter. A holder that is still
running does not notice until its next renewal, which takes up to 10 s by
default. Check first that the holder is gone: holdfast inspect NAME

  holdfast unlock order:42 --owner 8743c9c0-0795-4907-87fd-6c719a6b4586:54

The exit status is 1 if that owner does not hold the lock.`
}

// Validate refuses what cannot work.
func (c unlockCommand) Validate() error {
	if c.Owner == "" && !c.Force {
		return errors.New("pass --owner ID, or --force to release the lock whoever holds it; " +
			"holdfast inspect NAME lists the owners")
	}
	return nil
}

// Run releases the lock.
func (c unlockCommand) Run(ctx context.Context) error {
	asks := !c.Yes
	if asks && !tty.Are(os.Stdin, os.Stderr) {
		return status.New(status.Usage, errors.New("there is no terminal for the question; "+
			"confirm with --yes"))
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
	question := fmt.Sprintf("%s: %s\nRelease the lock? [y/N] ", printable.Text(c.Name), c.line(lock))
	if asks && !confirm(ctx, question) {
		return status.New(status.Failed,
			fmt.Errorf("lock %q: not released, because you did not confirm", c.Name))
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
		status.Print(os.Stderr, fmt.Sprintf("lock %q: released, but Redis rejected the "+
			"message to the waiters, so they notice within 5 s: %s", c.Name, refusal))
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
	text := fmt.Sprintf("lock %q: not released, because %s does not hold it", c.Name, c.Owner)
	if c.Force {
		text = fmt.Sprintf("lock %q: not released, because the holder has changed", c.Name)
	}
	switch {
	case lock.Holding() == 0:
		text = fmt.Sprintf("lock %q: not released, because nobody holds it", c.Name)
	case !strings.Contains(c.Owner, ":") && !c.Force:
		text += "; an owner has the form CLIENT:NUMBER"
	}
	var b strings.Builder
	b.WriteString(text)
	for i, h := range lock.Holders {
		if i == most {
			b.WriteString("\n  There are more holders; run holdfast inspect")
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
