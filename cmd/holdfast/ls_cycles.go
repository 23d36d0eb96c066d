package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/cmd/holdfast/internal/status"
	"holdfast/cmd/holdfast/internal/view"
	"holdfast/internal/printable"
)

// listCycles prints cycles of processes that wait for each other. If one of them is certain, the
// exit status is 1.
func (c lsCommand) listCycles(ctx context.Context, redis rueidis.Client, q locks.Query) error {
	all, err := locks.Cycles(ctx, redis, q)
	if err != nil {
		return withStatus(err)
	}
	if len(all) == 0 {
		sayNothingFound("Redis knows of no processes that wait for each other")
	}
	certain := false
	out := bufio.NewWriter(os.Stdout)
	for i, cycle := range all {
		certain = certain || cycle.Certain
		if c.JSON {
			err = cmp.Or(err, json.NewEncoder(out).Encode(cycle))
		} else {
			printCycle(out, i+1, cycle)
		}
	}
	err = cmp.Or(err, out.Flush())
	if err == nil && certain {
		err = status.New(status.Failed, nil)
	}
	return err
}

// printCycle prints who waits for whom, and what to do.
func printCycle(out io.Writer, number int, c locks.Cycle) {
	what := "possible deadlock, unless other goroutines or threads of these processes hold the locks"
	if c.Certain {
		what = "certain deadlock, until a waiter gives up or a lease ends"
	}
	fmt.Fprintf(out, "cycle %d: %s\n", number, what)
	for _, w := range c.Waits {
		since := ""
		if !w.Waiter.Since.IsZero() {
			since = ", for " + view.Since(w.Waiter.Since, time.Now()) + " now"
		}
		fmt.Fprintf(out, "  %s waits for %s%s, held by %s\n", who(w.Waiter.Owner, w.Waiter.Client),
			printable.Text(w.Lock), since, who(w.Holder.Owner, w.Holder.Client))
	}
	first := c.Waits[0]
	fmt.Fprintf(out, "  To end the cycle: holdfast unlock %s --owner %s\n", quoted(first.Lock),
		quoted(first.Holder.Owner))
}

// who names an owner, with its process if that is known.
func who(owner string, c locks.Client) string {
	text := view.ShortOwner(owner)
	if c.Known() {
		text += " (" + view.Who(owner, c) + ")"
	}
	return text
}

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quoted returns text as a word for a shell.
func quoted(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(printable.Text(text), "'", `'\''`) + "'"
}
