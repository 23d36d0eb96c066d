// Package servers has the list of servers that holdfast is tested with.
package servers

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed servers.txt
var list string

// Server is a line of servers.txt, where a comment explains the columns.
type Server struct {
	Name    string
	Make    string // Redis or Valkey
	Version string
	TLS     bool
	Parts   string
	How     []string // the words of a command of servers.sh
}

// All returns all servers.
func All() []Server {
	var all []Server
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		s := Server{
			Name: fields[0], Make: "Redis", Version: fields[1],
			TLS: fields[2] == "yes", Parts: fields[3], How: fields[4:],
		}
		if strings.HasPrefix(s.Name, "valkey") {
			s.Make = "Valkey"
		}
		all = append(all, s)
	}
	return all
}

// Image reports whether the server is the image of a container.
func (s Server) Image() bool { return s.How[0] == "image" }

// Version is a version without its patch level.
type Version struct{ Major, Minor int }

// Tested returns the oldest and the newest tested version of Redis or Valkey.
func Tested(name string) (oldest, newest Version) {
	var versions []Version
	for _, s := range All() {
		numbers := strings.Split(s.Version, ".")
		if s.Make != name || len(numbers) < 2 {
			continue // an image of a major version is any of its minor versions
		}
		versions = append(versions, Version{number(numbers[0]), number(numbers[1])})
	}
	return slices.MinFunc(versions, Version.Compare), slices.MaxFunc(versions, Version.Compare)
}

// Compare compares versions as cmp.Compare does.
func (v Version) Compare(other Version) int {
	return slices.Compare([]int{v.Major, v.Minor}, []int{other.Major, other.Minor})
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// number parses a number. It panics if text is not one, because tests read all of servers.txt.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic("servers.txt: " + err.Error())
	}
	return n
}

// Range returns the tested versions of Redis or Valkey: "6.2 to 8.0".
func Range(name string) string {
	oldest, newest := Tested(name)
	return fmt.Sprintf("%s to %s", oldest, newest)
}
