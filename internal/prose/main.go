// Command prose counts what makes English hard to read in the documents and in the package
// documentation, and fails if a page has too much of it. CONTRIBUTING.md has the rules of style.
//
//	go run ./internal/prose          all pages and packages; run it in the root of the repository
//	go run ./internal/prose -v       with the counts of each
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// counts has what is counted, per 1,000 words of running text.
type counts struct {
	relative   float64 // that, which
	colons     float64 // in the middle of a sentence
	semicolons float64
	pronouns   float64 // it, its, they, their, them, those, one, ones
}

// most bounds the counts of each page and package, a tenth above the largest when it was set. A
// page below smallest words may have twice as much, because a single word makes a difference there.
var most = counts{relative: 16.3, colons: 2.7, semicolons: 1.8, pronouns: 25}

const (
	smallest      = 200
	wordsOfCell   = 15
	charsOfColumn = 160
)

// private matches words that only we use, with what to write instead.
var private = map[*regexp.Regexp]string{
	regexp.MustCompile(`(?i)\b(quickest)\b`):                        "the first client to ask",
	regexp.MustCompile(`(?i)\b(circles?)\b`):                        "cycle, deadlock",
	regexp.MustCompile(`(?i)\b(giv(e|es|en|ing) back|gave back)\b`): "release",
	regexp.MustCompile(`(?i)\b(lets? go of)\b`):                     "release",
	regexp.MustCompile(`(?i)\b(this very|that very)\b`):             "this",
	regexp.MustCompile(`(?i)\b(refus(e|es|ed|ing))\b`):              "reject",
	regexp.MustCompile(`(?i)\b(hears?|heard)\b`):                    "receive",
}

// packages are those that users import.
var packages = []string{
	"./rlock", "./multilock", "./redlock", "./leader", "./once", "./once/oncehttp", "./rlocktest",
	"./otel", "./redissonyaml", "./goredis", "./lua", "./pubsub", "./watchdog",
}

// messages is the page with the texts of errors, logs and the program, which are in code spans.
const messages = "docs/messages.md"

func main() {
	verbose := flag.Bool("v", false, "print the counts of each page and package")
	flag.Parse()
	complaints, err := check(*verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	for _, c := range complaints {
		fmt.Fprintln(os.Stderr, c)
	}
	if len(complaints) > 0 {
		fmt.Fprintln(os.Stderr, "prose: rewrite these sentences; CONTRIBUTING.md has the rules of style")
		os.Exit(1)
	}
}

// check returns what is wrong with the pages and packages.
func check(verbose bool) (complaints []string, err error) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		return nil, err
	}
	pages = append(pages, "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
		"bench/README.md", "integration/README.md", "integration/model/README.md",
		"internal/mutants/README.md")
	slices.Sort(pages)
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		if page == messages {
			complaints = append(complaints, judge(page, textsOf(string(content)), verbose)...)
			continue
		}
		complaints = append(complaints, judge(page, string(content), verbose)...)
		complaints = append(complaints, judgeLines(page, string(content))...)
	}
	for _, p := range packages {
		text, err := documentation(p)
		if err != nil {
			return nil, err
		}
		complaints = append(complaints, judge("go doc "+p, text, verbose)...)
	}
	return complaints, nil
}

// textsOf returns the texts of the list of messages as sentences. It leaves out the colons and
// semicolons between the parts of a message, which each error has.
func textsOf(page string) string {
	var b strings.Builder
	for _, text := range span.FindAllString(page, -1) {
		text = placeholder.ReplaceAllString(text, "X")
		text = strings.NewReplacer("`", "", ": ", ". ", "; ", ". ").Replace(text)
		b.WriteString(text + ".\n")
	}
	return b.String()
}

// documentation returns the text of a package's documentation without its declarations.
func documentation(of string) (string, error) {
	out, err := exec.Command("go", "doc", "-all", of).Output()
	if err != nil {
		return "", fmt.Errorf("go doc %s: %w", of, err)
	}
	declaration := regexp.MustCompile(`^(func|type|const|var|\)|\}|package|\t)`)
	var b strings.Builder
	for line := range strings.Lines(string(out)) {
		line = strings.TrimPrefix(line, "    ")
		if !declaration.MatchString(line) {
			b.WriteString(line)
		}
	}
	return b.String(), nil
}

// judge compares the counts of a text with the bounds.
func judge(name, text string, verbose bool) (complaints []string) {
	running := runningText(text)
	n, c := count(running)
	if verbose {
		fmt.Printf("%-30s %6d words %5.1f that/which %5.1f colons %5.1f semicolons %5.1f pronouns\n",
			name, n, c.relative, c.colons, c.semicolons, c.pronouns)
	}
	factor := 1.0
	if n < smallest {
		factor = 2
	}
	for _, bound := range []struct {
		what      string
		got, most float64
	}{
		{"that and which", c.relative, most.relative},
		{"colons in sentences", c.colons, most.colons},
		{"semicolons", c.semicolons, most.semicolons},
		{"it, they, those, one", c.pronouns, most.pronouns},
	} {
		if bound.got > bound.most*factor {
			complaints = append(complaints, fmt.Sprintf("%s: %s: %.1f per 1,000 words, want at most %.0f",
				name, bound.what, bound.got, bound.most*factor))
		}
	}
	for pattern, instead := range private {
		if word := pattern.FindString(running); word != "" {
			complaints = append(complaints, fmt.Sprintf("%s: %q: write %q", name, word, instead))
		}
	}
	slices.Sort(complaints)
	return complaints
}

var (
	code        = regexp.MustCompile("(?s)```.*?```|<!--.*?-->")
	link        = regexp.MustCompile(`!?\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])`)
	span        = regexp.MustCompile("`[^`]*`")
	item        = regexp.MustCompile(`\n\s*[-*] |\n\n+`)
	placeholder = regexp.MustCompile(`‹[^›]*›`) // stands for a value, in the list of messages
	word        = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)
	colon       = regexp.MustCompile("[a-z)]: [A-Za-z`]")
	notText     = regexp.MustCompile(`^(    |\t|\||#|\[[^\]]+\]:)`)
	pronouns    = []string{"it", "its", "they", "their", "them", "those", "one", "ones"}
)

// runningText leaves out code, tables, headings and the targets of links.
func runningText(text string) string {
	text = code.ReplaceAllString(text, "")
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !notText.MatchString(line) {
			b.WriteString(line)
		}
	}
	text = link.ReplaceAllString(b.String(), "$1")
	text = span.ReplaceAllString(text, "X")
	return strings.ReplaceAll(item.ReplaceAllString(text, ". "), "\n", " ")
}

// count returns the number of words of a running text, and what is counted.
func count(text string) (words int, c counts) {
	per := make(map[string]int)
	for _, w := range word.FindAllString(text, -1) {
		words++
		per[strings.ToLower(w)]++
	}
	thousands := max(float64(words), 1) / 1000
	sum := 0
	for _, p := range pronouns {
		sum += per[p]
	}
	return words, counts{
		relative:   float64(per["that"]+per["which"]) / thousands,
		colons:     float64(len(colon.FindAllString(text, -1))) / thousands,
		semicolons: float64(strings.Count(text, ";")) / thousands,
		pronouns:   float64(sum) / thousands,
	}
}

// judgeLines finds cells of tables that hold sentences, and lines that are too long.
func judgeLines(page, text string) (complaints []string) {
	line := 0
	for l := range strings.Lines(text) {
		line++
		l = strings.TrimSpace(l)
		if !strings.HasPrefix(l, "|") {
			if utf8.RuneCountInString(l) > charsOfColumn && !strings.Contains(l, "](") {
				complaints = append(complaints, fmt.Sprintf("%s:%d: a line of %d characters, want at most %d",
					page, line, utf8.RuneCountInString(l), charsOfColumn))
			}
			continue
		}
		cells := strings.SplitSeq(strings.ReplaceAll(l, `\|`, "/"), "|")
		for cell := range cells {
			n := len(word.FindAllString(span.ReplaceAllString(link.ReplaceAllString(cell, "$1"), "X"), -1))
			if n > wordsOfCell {
				complaints = append(complaints, fmt.Sprintf(
					"%s:%d: a cell of %d words, want at most %d: write a paragraph instead",
					page, line, n, wordsOfCell))
			}
		}
	}
	return complaints
}
