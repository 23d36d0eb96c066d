package view

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/internal/printable"
	"holdfast/rlock"
)

// Holders says who holds a lock: "nightly on web-1 (pid 4711)", "writer 7f3a90c1…:12", "2 readers",
// or "" if it is free.
func Holders(l locks.Lock) string {
	if len(l.Holders) == 0 {
		return ""
	}
	if n := owners(l); n > 1 {
		return fmt.Sprintf("%d readers", n)
	}
	who := Who(l.Holders[0].Owner, l.Holders[0].Client)
	switch l.Mode() {
	case "read":
		return "reader " + who
	case "write":
		return "writer " + who
	}
	return who
}

// Who names an owner by its process, "nightly on web-1 (pid 4711)", or by its id, the start of
// which is enough to tell it from others.
func Who(owner string, c locks.Client) string {
	name := cmp.Or(c.Label, c.Program)
	if name == "" {
		return ShortOwner(owner)
	}
	text := printable.Short(name)
	if c.Host != "" {
		text += " on " + printable.Short(c.Host)
	}
	if c.PID != 0 {
		text += fmt.Sprintf(" (pid %d)", c.PID)
	}
	return text
}

// ShortOwner returns an owner "<client id>:<number>" with the first eight characters of its client.
func ShortOwner(owner string) string {
	const enough = 8
	client, number, _ := strings.Cut(owner, ":")
	if runes := []rune(client); len(runes) > enough+1 {
		client = string(runes[:enough]) + "…"
	}
	if number != "" {
		client += ":" + number
	}
	return printable.Short(client)
}

// owners counts those who hold a lock.
func owners(l locks.Lock) int {
	seen := make(map[string]bool, len(l.Holders))
	for _, h := range l.Holders {
		seen[h.Owner] = true
	}
	return len(seen) + l.MoreHolders
}

// levels counts the levels at which a lock is held, those of all readers together.
func levels(l locks.Lock) (n int) {
	for _, h := range l.Holders {
		n += h.Count
	}
	return n
}

// TTL formats what is left of a lease: "12.3 s", "2m30s", "never ends".
func TTL(d time.Duration) string {
	switch {
	case d == rlock.NoExpiry:
		return "never ends"
	case d < 100*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}
