// Package printable makes text from Redis, which anybody may have written, safe on a terminal and
// in a log.
package printable

import (
	"strconv"
	"strings"
)

// Text returns text with what could move a cursor or begin a line, or is not UTF-8, as Go escapes
// it.
func Text(text string) string {
	quoted := strconv.Quote(text)
	return unescape.Replace(quoted[1 : len(quoted)-1])
}

var unescape = strings.NewReplacer(`\"`, `"`, `\\`, `\`)
