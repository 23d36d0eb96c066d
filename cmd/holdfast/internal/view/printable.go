package view

import (
	"strconv"
	"strings"
)

// Printable returns text from Redis so that it is safe on a terminal: what could move a cursor, or
// is not UTF-8, is escaped as Go does.
func Printable(text string) string {
	quoted := strconv.Quote(text)
	return unescape.Replace(quoted[1 : len(quoted)-1])
}

var unescape = strings.NewReplacer(`\"`, `"`, `\\`, `\`)
