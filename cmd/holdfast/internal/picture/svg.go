//go:build unix

// Package picture draws the screen of a terminal as SVG, for the documents.
package picture

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"holdfast/cmd/holdfast/internal/terminal"
)

// The measures of the picture, in pixels.
const (
	columnWidth = 8.4 // of most monospaced fonts, for the size of 14
	lineHeight  = 18
	margin      = 14
)

// The colours, which read well in a light and in a dark page.
const (
	background = "#1e2430"
	foreground = "#d8dee9"
)

var basic = map[ansi.BasicColor]string{
	ansi.Black: "#3b4252", ansi.Red: "#f07178", ansi.Green: "#a3d977", ansi.Yellow: "#ffcb6b",
	ansi.Blue: "#82aaff", ansi.Magenta: "#c792ea", ansi.Cyan: "#7fdbca", ansi.White: foreground,
}

// SVG returns what is on the screen. Its title says what the picture shows.
func SVG(t *terminal.Terminal, title string) string {
	screen := t.Emulator()
	rows := strings.Count(t.Screen(), "\n")
	width := 2*margin + float64(screen.Width())*columnWidth
	height := 2*margin + rows*lineHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" `+
		`viewBox="0 0 %.0f %d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", escape(title))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", background)
	b.WriteString(`<g font-family="'DejaVu Sans Mono',Menlo,Consolas,monospace" font-size="14" ` +
		`xml:space="preserve">` + "\n")
	for y := range rows {
		for x := 0; x < screen.Width(); {
			x += draw(&b, screen.CellAt, screen.Width(), x, y)
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// draw draws the text from x on that has the same style, and returns how many columns that is. A
// gap ends it as well, so that columns are below each other, whatever the font.
func draw(b *strings.Builder, cell func(x, y int) *uv.Cell, width, x, y int) (columns int) {
	style := cell(x, y).Style
	var text strings.Builder
	for x+columns < width {
		c := cell(x+columns, y)
		content := cmp.Or(c.Content, " ")
		if c.Style != style || content != " " && strings.HasSuffix(text.String(), "  ") {
			break
		}
		text.WriteString(content)
		columns += max(1, c.Width)
	}
	left, top := margin+float64(x)*columnWidth, margin+y*lineHeight
	ink, paper := hex(style.Fg, foreground), hex(style.Bg, "")
	if style.Attrs&uv.AttrReverse != 0 {
		ink, paper = background, ink
	}
	if paper != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" `+
			`shape-rendering="crispEdges"/>`+"\n", left, top, float64(columns)*columnWidth,
			lineHeight, paper)
	}
	said := strings.TrimRight(text.String(), " ")
	if said == "" {
		return columns
	}
	more := ""
	if style.Attrs&uv.AttrBold != 0 {
		more += ` font-weight="bold"`
	}
	if style.Attrs&uv.AttrFaint != 0 {
		more += ` opacity="0.65"`
	}
	indent := float64(len(said)-len(strings.TrimLeft(said, " "))) * columnWidth
	said = strings.TrimLeft(said, " ")
	fmt.Fprintf(b, `<text x="%.1f" y="%d" textLength="%.1f" fill="%s"%s>%s</text>`+"\n", left+indent,
		top+lineHeight-5, float64(ansi.StringWidth(said))*columnWidth, ink, more, escape(said))
	return columns
}

// hex returns a colour as SVG has it.
func hex(c color.Color, otherwise string) string {
	if c == nil {
		return otherwise
	}
	if b, ok := c.(ansi.BasicColor); ok {
		if text, ok := basic[b%8]; ok { // bright ones look the same
			return text
		}
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes everything
	return b.String()
}
