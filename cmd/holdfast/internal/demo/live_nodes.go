package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// alive returns the row of a scene's own servers: how many were up in the middle of each column's
// time, and where one died.
func (l *live) alive(s scene) string {
	step, deaths := l.step(), l.board.deaths[s.lock]
	var b strings.Builder
	for i := range l.columns() {
		from := time.Duration(i) * step
		left, cross := len(s.nodes), false
		for _, at := range deaths {
			if at < from+step {
				left--
				cross = cross || at >= from
			}
		}
		switch {
		case cross:
			b.WriteString(l.ink.paint(red, "✗"))
		case from+step/2 > l.now-mergeDelay:
			b.WriteString(" ")
		default:
			b.WriteString(l.ink.dim(strconv.Itoa(left)))
		}
	}
	return b.String()
}

// died returns how many of a scene's own servers are gone, in words; "" if none is.
func (l *live) died(s scene) string {
	if n := len(l.board.deaths[s.lock]); n > 0 {
		return fmt.Sprintf("%d of %d died", n, len(s.nodes))
	}
	return ""
}
