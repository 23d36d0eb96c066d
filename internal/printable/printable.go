// Package printable makes text from Redis, which anybody may have written, safe on a terminal and
// in a log.
package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text returns text with what could move a cursor or begin a line, or is not UTF-8, as Go escapes
// it.
func Text(text string) string {
	if plain(text) {
		return text
	}
	quoted := strconv.Quote(text)
	return unescape.Replace(quoted[1 : len(quoted)-1])
}

var unescape = strings.NewReplacer(`\"`, `"`, `\\`, `\`)

// plain reports whether text has only printable characters of ASCII.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// mostShort bounds Short. It is enough for every owner and for the errors of servers.
const mostShort = 400

// Short is [Text] of at most some 400 bytes, for what has no good reason to be longer: owners,
// addresses, error replies. The rest is cut off, and … takes its place.
func Short(text string) string {
	short := Text(text[:before(text, mostShort)])
	if len(text) <= mostShort && len(short) <= mostShort {
		return short
	}
	return short[:before(short, mostShort)] + "…"
}

// before returns where to cut text off, at the beginning of a character.
func before(text string, most int) int {
	if len(text) <= most {
		return len(text)
	}
	for at := most; at > most-utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			return at
		}
	}
	return most // it is not UTF-8
}

// Lines is [Text] for each line of a text.
func Lines(text string) string {
	if plain(text) {
		return text
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Text(lines[i])
	}
	return strings.Join(lines, "\n")
}

// JSON returns a document with the characters escaped that [Text] escapes, as JSON does. Those
// below space are escaped in every document, but not, for instance, those that reverse a line.
func JSON(document []byte) []byte {
	if plain(string(document)) {
		return document
	}
	var out strings.Builder
	for _, r := range string(document) {
		switch {
		case r < utf8.RuneSelf && r != '\x7f' || strconv.IsPrint(r):
			out.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return []byte(out.String())
}
