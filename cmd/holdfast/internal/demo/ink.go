package demo

// Escape sequences of terminals.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	noWrap     = "\x1b[?7l" // a line too long for a shrunken window must not become two
	wrap       = "\x1b[?7h"
	cursorUp   = "\x1b[%dA\r"
	clearToEnd = "\x1b[K"
	clearBelow = "\x1b[J"
	reset      = "\x1b[0m"
)

type colour string

const (
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
	cyan   colour = "\x1b[36m"
	bold   colour = "\x1b[1m"
	dim    colour = "\x1b[2m"
)

// ink says whether to use colours. The picture is complete without them.
type ink bool

func (i ink) paint(c colour, text string) string {
	if !i || text == "" {
		return text
	}
	return string(c) + text + reset
}

func (i ink) bold(text string) string { return i.paint(bold, text) }

func (i ink) dim(text string) string { return i.paint(dim, text) }

// state returns the sign of a state, one column wide.
func (i ink) state(s state) string {
	switch s {
	case holds:
		return i.paint(green, "█")
	case reenters:
		return i.paint(cyan, "▓")
	case waits:
		return i.paint(yellow, "·")
	case orphaned:
		return i.paint(red, "╌")
	case idle, dead:
	}
	return " "
}
