package server

import (
	"fmt"
	"strconv"
	"strings"
)

// Calls is how often each command was carried out, by its name in lower case.
type Calls map[string]int

// own are the commands of the benchmark itself.
var own = map[string]bool{"info": true, "config": true, "monitor": true, "echo": true}

// ResetCalls begins to count anew.
func (c *Conn) ResetCalls() error {
	_, err := c.Do("CONFIG", "RESETSTAT")
	return err
}

// Calls returns what was carried out since ResetCalls, without the benchmark's own. The server counts what scripts do as
// well: see Origins.
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
		count, _, _ := strings.Cut(strings.TrimPrefix(rest, "calls="), ",")
		n, err := strconv.Atoi(count)
		if err != nil {
			return nil, fmt.Errorf("INFO commandstats says %q", line)
		}
		if !own[name] {
			calls[name] += n
		}
	}
	return calls, nil
}

// Origins says who sent commands: clients, or scripts on the server.
type Origins struct {
	clients, scripts Calls
}

// Clients is how many of the calls were sent by clients. INFO does not tell them from those of scripts, so each command is
// taken to have come from clients as often, in proportion, as while the server was watched. Mostly that is always or never,
// and the number is exact.
func (o Origins) Clients(calls Calls) float64 {
	sent := 0.0
	for name, n := range calls {
		clients, scripts := o.clients[name], o.scripts[name]
		if scripts == 0 {
			sent += float64(n)
		} else {
			sent += float64(n) * float64(clients) / float64(clients+scripts)
		}
	}
	return sent
}

// Scripts tells whether any script was seen at work.
func (o Origins) Scripts() bool { return len(o.scripts) > 0 }

// Sent is how many commands clients sent while the server was watched.
func (o Origins) Sent() int {
	sent := 0
	for _, n := range o.clients {
		sent += n
	}
	return sent
}
