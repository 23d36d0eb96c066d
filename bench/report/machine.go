package report

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine is what figures depend on.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	System    string `json:"system"`
	Go        string `json:"go"`
	Redis     string `json:"redis"`
	Command   string `json:"command"`
	Rounds    int    `json:"rounds"`
}

// ThisMachine returns a description of the machine of this process. The caller adds the rest.
func ThisMachine(redis, command string, rounds int) Machine {
	m := Machine{Processor: runtime.GOARCH, Cores: runtime.NumCPU(), System: runtime.GOOS,
		Go: runtime.Version(), Redis: redis, Command: command, Rounds: rounds}
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return m
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok &&
			strings.TrimSpace(key) == "model name" {
			m.Processor = strings.TrimSpace(value)
			break
		}
	}
	return m
}

// Text returns one line.
func (m Machine) Text() string {
	return fmt.Sprintf("`%s`, medians of %d rounds; %d cores (%s), %s, "+
		"Redis %s on the same machine, %s",
		m.Command, m.Rounds, m.Cores, m.Processor, m.System, m.Redis, m.Go)
}
