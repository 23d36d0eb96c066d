// Package tty tells which of the standard files of the program are terminals.
package tty

import (
	"os"

	"golang.org/x/term"
)

// Are reports whether all these files are terminals.
func Are(files ...*os.File) bool {
	for _, f := range files {
		if !term.IsTerminal(int(f.Fd())) {
			return false
		}
	}
	return true
}

// Width returns the columns of a terminal; 0 if the file is none.
func Width(f *os.File) int {
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
