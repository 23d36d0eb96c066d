package demo

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/term"
)

// view shows the demo while it runs. It is used by one goroutine.
type view interface {
	// show is called for each event, ordered by time except for late ones.
	show(e event)
	// tick is called often, with the time on the demo's clock.
	tick(now time.Duration)
	// close leaves the terminal as it was found. It may be called at any time, once.
	close()
}

// newView returns a view that draws a timeline where that is possible and wanted, and prints lines
// elsewhere.
func newView(o Options, where server, scenes []scene) view {
	processes := 0
	for _, s := range scenes {
		processes += len(s.cast)
	}
	what := "Redis at " + where.String()
	if where.Embedded {
		what = "embedded server at " + where.String()
	}
	title := fmt.Sprintf("%s, %d processes", what, processes)
	width, height, err := term.GetSize(int(o.Output.Fd()))
	switch {
	case o.Plain, err != nil, os.Getenv("TERM") == "dumb":
	case runtime.GOOS == "windows": // its older consoles print escape sequences
	case width < minWidth || height < minHeight(scenes):
	default:
		return newLive(o.Output, title, scenes, min(width, maxWidth), height,
			os.Getenv("NO_COLOR") == "")
	}
	return newPlain(o.Output, title, scenes)
}
