package demo

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	minWidth  = 72
	maxWidth  = 110
	noteWidth = 24

	// scale is the time that the timeline has room for at first. Later it is drawn smaller, step by
	// step.
	scale     = 8 * time.Second
	scaleStep = 2 * time.Second

	redraw = 60 * time.Millisecond
)

// live draws one row per process and redraws it in place.
type live struct {
	out    io.Writer
	title  string
	scenes []scene
	width  int
	height int // of the screen
	ink    ink

	board *board
	plain *plain                   // for its words
	notes map[string]string        // by process: shown beside its row
	cross map[string]time.Duration // by process: when it was killed or gave up
	over  map[string]bool          // by process: it has ended
	drawn int                      // lines on the screen
	last  time.Duration            // when they were drawn
	now   time.Duration
}

func newLive(out io.Writer, title string, scenes []scene, width, height int, colours bool) *live {
	l := &live{
		out: out, title: title, scenes: scenes, width: width, height: height, ink: ink(colours),
		plain: newPlain(io.Discard, "", scenes),
		notes: map[string]string{},
		cross: map[string]time.Duration{},
		over:  map[string]bool{},
	}
	l.board = l.plain.board
	fmt.Fprint(out, hideCursor+noWrap)
	return l
}

func (l *live) show(e event) {
	handover := l.board.apply(e)
	switch e.Kind {
	case entered:
		r := l.board.row(e.Process)
		note := ""
		if l.plain.parts[e.Process].Sections > 1 {
			note = fmt.Sprintf("%d/%d", r.sections, l.plain.parts[e.Process].Sections)
		}
		switch {
		case handover.from.killed:
			note = "took over after " + brief(handover.took)
		case len(handover.past) > 0:
			note = "past the dead in " + brief(handover.took)
		case handover.took > 0:
			note = strings.TrimPrefix(note+"  woken in "+brief(handover.took), "  ")
		case note == "":
			note = l.plain.does(e.Process)
		}
		l.notes[e.Process] = note
	case leaving:
		if lease := l.plain.parts[e.Process].WatchdogLease; lease > 0 {
			l.notes[e.Process] = "outlived its lease"
		} else if l.notes[e.Process] == l.plain.does(e.Process) {
			l.notes[e.Process] = "let go"
		}
	case gaveUp:
		l.cross[e.Process] = e.At
		l.notes[e.Process] = "held for another " + brief(e.TTL)
	case killed:
		l.cross[e.Process] = e.At
		l.notes[e.Process] = "killed"
	case waiting:
		if l.plain.parts[e.Process].Type == reading && len(l.board.queueOf(e.Lock)) > 0 {
			l.notes[e.Process] = "steps back"
		}
	case queued:
		if l.plain.parts[e.Process].Type == writing {
			l.notes[e.Process] = "waits for readers"
		}
	case failed:
		l.notes[e.Process] = "failed"
	case ended:
		l.over[e.Process] = true
	case ready, nested, unnested, left, died:
	}
}

func (l *live) tick(now time.Duration) {
	l.now = now
	if l.drawn == 0 || now-l.last >= redraw {
		l.draw(l.onScreen())
	}
}

func (l *live) close() {
	if l.drawn > 0 {
		l.draw(l.scenes) // it may scroll now: nothing is drawn over it
	}
	fmt.Fprint(l.out, wrap+showCursor)
}

// draw replaces what is on the screen, in one write so that no half of it is ever seen.
func (l *live) draw(scenes []scene) {
	var b bytes.Buffer
	if l.drawn > 0 {
		fmt.Fprintf(&b, cursorUp, l.drawn)
	}
	lines := l.picture(scenes)
	for _, line := range lines {
		b.WriteString(line + clearToEnd + "\n")
	}
	b.WriteString(clearBelow)
	l.drawn, l.last = len(lines), l.now
	fmt.Fprint(l.out, b.String())
}

// picture returns the lines to draw for these scenes.
func (l *live) picture(scenes []scene) []string {
	heading := "holdfast demo  " + l.title
	elapsed := fmt.Sprintf("%.1f s", l.now.Seconds())
	room := max(1, l.width-1-utf8.RuneCountInString(heading)-len(elapsed))
	lines := []string{l.ink.bold(heading) + strings.Repeat(" ", room) + elapsed}
	for _, s := range scenes {
		lines = append(lines, "", l.ink.bold(fmt.Sprintf("%-9s", s.lock))+" "+l.ink.dim(s.title))
		for _, p := range s.cast {
			note := l.notes[p.Process]
			if place := l.place(p); place != "" {
				note = place
			}
			if lease := p.WatchdogLease; lease > 0 && l.board.row(p.Process).state() == holds {
				note = fmt.Sprintf("holds for %.1f s",
					(l.now - l.board.row(p.Process).since()).Seconds())
			}
			lines = append(lines,
				fmt.Sprintf("  %-5s %s %s", p.Process, l.timeline(p.Process), l.ink.dim(note)))
		}
		if len(s.nodes) > 0 {
			lines = append(lines,
				fmt.Sprintf("  %-5s %s %s", "nodes", l.alive(s), l.ink.dim(l.died(s))))
		}
	}
	lines = append(lines, "        "+l.ink.dim(l.axis()), l.legend())
	if more := len(l.scenes) - len(scenes); more > 0 {
		lines = append(lines,
			l.ink.dim(fmt.Sprintf("  %d more when there is room, or at the end", more)))
	}
	return lines
}

// place returns the position of a process in the queue of a fair lock, in words; "" if it has none.
func (l *live) place(p part) string {
	i := slices.Index(l.board.queueOf(p.Lock), p.Process)
	if p.Type != fair || i < 0 || l.board.row(p.Process).state() != waits {
		return ""
	}
	return fmt.Sprintf("no. %d in the queue", i+1)
}

// columns returns the width of the timelines.
func (l *live) columns() int { return l.width - 2 - 5 - 1 - 1 - noteWidth }

// step returns the time that one column stands for.
func (l *live) step() time.Duration {
	room := scale
	for room < l.now {
		room += scaleStep
	}
	return room / time.Duration(l.columns())
}

// timeline returns the row of a process. A column shows the state in the middle of its time, so
// that two processes appear in one column only if they were inside at the same instant.
func (l *live) timeline(process string) string {
	r, step := l.board.row(process), l.step()
	crossed, hasCross := l.cross[process]
	var b strings.Builder
	for i := range l.columns() {
		from := time.Duration(i) * step
		middle := from + step/2
		switch {
		case hasCross && from <= crossed && crossed < from+step:
			b.WriteString(l.ink.paint(red, "✗"))
		case middle > l.now-mergeDelay: // earlier events may still come
			b.WriteString(" ")
		default:
			b.WriteString(l.ink.state(r.stateAt(middle)))
		}
	}
	return b.String()
}

// axis returns the line with the seconds, as many as there is room for.
func (l *live) axis() string {
	line := []byte(strings.Repeat(" ", l.columns()))
	step := l.step()
	every := time.Second
	for step*time.Duration(len("10 s ")) > every {
		every *= 2
	}
	for second := time.Duration(0); ; second += every {
		label := brief(second)
		at := int(second / step)
		if at+len(label) > len(line) {
			return string(line)
		}
		copy(line[at:], label)
	}
}

func (l *live) legend() string {
	var said []string
	for _, entry := range []struct {
		state state
		means string
	}{{holds, "holds"}, {reenters, "re-entered"}, {waits, "waits"},
		{orphaned, "dead, in the way"}} {
		said = append(said, l.ink.state(entry.state)+l.ink.dim(" "+entry.means))
	}
	said = append(said, l.ink.paint(red, "✗")+l.ink.dim(" killed, or gave up"))
	return "  " + strings.Join(said, "  ")
}
