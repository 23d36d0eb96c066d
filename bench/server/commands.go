package server

import (
	"fmt"
	"strings"
	"time"
)

// Calls are the executions of each command, by its name in lower case.
type Calls map[string]Tally

// Tally is how often a command was executed, and for how long in all. The time of a script includes
// that of its commands.
type Tally struct {
	Count int
	Time  time.Duration
}

// counts are tallies without time.
type counts map[string]int

// own are the commands of the benchmark itself.
var own = map[string]bool{"info": true, "config": true, "monitor": true, "echo": true}

// ResetCalls resets the counts.
func (c *Conn) ResetCalls() error {
	_, err := c.Do("CONFIG", "RESETSTAT")
	return err
}

// Calls returns what was executed since ResetCalls, without the benchmark's own commands. The
// server also counts what scripts call: see Origins.
func (c *Conn) Calls() (Calls, error) {
	info, err := c.Do("INFO", "commandstats")
	if err != nil {
		return nil, err
	}
	return parseCalls(info)
}

func parseCalls(info string) (Calls, error) {
	calls := Calls{}
	for line := range strings.Lines(info) {
		stat, ok := strings.CutPrefix(strings.TrimSpace(line), "cmdstat_")
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(stat, ":")
		name, _, _ = strings.Cut(name, "|") // client|tracking
		var n, microseconds int64
		if _, err := fmt.Sscanf(rest, "calls=%d,usec=%d", &n, &microseconds); err != nil {
			return nil, fmt.Errorf("INFO commandstats says %q", line)
		}
		if !own[name] {
			t := calls[name]
			calls[name] = Tally{t.Count + int(n),
				t.Time + time.Duration(microseconds)*time.Microsecond}
		}
	}
	return calls, nil
}

// Origins counts the commands by origin: clients, or scripts on the server.
type Origins struct {
	clients, scripts counts
}

// Clients returns how many of the calls were sent by clients, and how long those took. INFO does
// not tell them from those of scripts, so each command is taken to come from clients in the same
// proportion as while the server was watched. Mostly that is all or none, and both are exact.
func (o Origins) Clients(calls Calls) (sent float64, took time.Duration) {
	for name, t := range calls {
		share := 1.0
		if scripts := o.scripts[name]; scripts > 0 {
			share = float64(o.clients[name]) / float64(o.clients[name]+scripts)
		}
		sent += share * float64(t.Count)
		took += time.Duration(share * float64(t.Time))
	}
	return sent, took
}

// Scripts reports whether any script was seen at work.
func (o Origins) Scripts() bool { return len(o.scripts) > 0 }

// Sent returns how many commands clients sent while the server was watched.
func (o Origins) Sent() int {
	sent := 0
	for _, n := range o.clients {
		sent += n
	}
	return sent
}
