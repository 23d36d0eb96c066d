package docs_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/docs"
	"holdfast/redlock"
	"holdfast/rlock"
)

var update = flag.Bool("update", false, "write docs/messages.md anew")

const (
	messagesFile = "../../docs/messages.md"
	messagesHead = `# Messages

Search this page for a message that you have seen, but leave out values, because the page shows a
placeholder, such as ‹owner›, for each value. A long message consists of several texts of this page.

[Errors](errors.md) says what each error means. A test writes this page from the source:
` + "`go test ./internal/docs -update`." + `
`
	theErrors  = "Errors"
	logLines   = "Log lines"
	theProgram = "The program"
	theDoctor  = "The doctor"
)

// sections of the page have the texts below a directory, unless a later section has them.
var sections = []struct{ title, directory string }{
	{theErrors, ""}, {logLines, "-"}, {theProgram, "cmd/holdfast/"},
	{theDoctor, "cmd/holdfast/internal/doctor/"}, {"Vet", "cmd/holdfastvet/"}, {"Tests", "rlocktest/"},
	{"Redisson's configuration file", "redissonyaml/"}, {"Options of go-redis", "goredis/"},
	{"Metrics and traces", "otel/"},
}

var (
	// silent are directories whose texts no user sees: code that only tests and tools of this
	// repository use, and the story of the demo.
	silent = regexp.MustCompile(`^(bench|examples|integration|otel/dashboard|` +
		`cmd/holdfast/internal/(demo|terminal)|internal/(doctable|fakeredis|faultproxy|faults|` +
		`fragments|inprocess|locktest|logtest|luashim|mutants|portlock|prose|redistest|servers|` +
		`suite))(/|$)|(^|/)(testdata|\.[^/]*)(/|$)`)
	// deaf are functions whose arguments are patterns and commands.
	deaf = regexp.MustCompile(`(^|\.)(MustCompile|Contains|NewReplacer|Sscanf|refuses)$`)
	// data are literals that are no texts: commands, and what the runtime writes.
	data = regexp.MustCompile(`^(KEY [a-zPX0-9 ]+|NUMSUB KEY|(time )?get (incr|set)[a-z ]*|` +
		`evalsha eval [a-z ]+|\ncreated by |return (1|redis.*))$`)
	// formats return a text or an error with a text. Loggers write one, with keys and values.
	formats = regexp.MustCompile(`(^|\.)(Sprintf|Errorf|New|[iI]nvalid)$`)
	loggers = regexp.MustCompile(`(^|\.)([wW]arn|log|Error|Info)$`)
	// passing matches functions and methods that only change how a value looks.
	passing = regexp.MustCompile(`\b((cmp|fmt|printable|slices|strconv|strings|time|types)\.\w+|max|` +
		`min|len|string|int64|rune)\(|\.(Round|Truncate|String|Error|Abs|Milliseconds|Format)\(.*`)

	verb         = regexp.MustCompile(`%(\[\d\])?[-+#0-9.]*([a-zA-Z%])`)
	placeholder  = regexp.MustCompile(`‹[^›]*›`)
	identifier   = regexp.MustCompile(`[A-Za-z][\w.]*`)
	betweenWords = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)
	severalWords = regexp.MustCompile(`[A-Za-z%][^ ]* +[^ ]`)
	// part matches a text that only continues another.
	part = regexp.MustCompile(`^( ?[,;:] | [a-z(])`)
)

// whole are errors whose text consists of several.
var whole = []error{
	&rlock.HeldError{Owner: "‹owner›", TTL: 12 * time.Second},
	&rlock.HeldError{Owner: "‹owner›", TTL: 12 * time.Second, SameProcess: true, SameClient: true},
	&redlock.QuorumError{Want: 2, Granted: 1, Nodes: []redlock.NodeError{
		{Server: "‹server›", Err: redlock.ErrNoReply},
		{Server: "‹server›", Err: &rlock.HeldError{Owner: "‹owner›"}}}},
}

// reader collects the texts of the library and the program.
type reader struct {
	section, pkg string
	values       map[string]ast.Expr        // of constants and variables, as in "rlock.ErrLost"
	found        map[string]map[string]bool // texts, by section
	keys         map[string]bool            // of log lines
}

// readMessages reads all files that users meet.
func readMessages(t *testing.T) *reader {
	t.Helper()
	r := &reader{values: map[string]ast.Expr{}, found: map[string]map[string]bool{},
		keys: map[string]bool{}}
	for _, s := range sections {
		r.found[s.title] = map[string]bool{}
	}
	files, set := map[string]*ast.File{}, token.NewFileSet()
	walk := func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && silent.MatchString(name):
			return fs.SkipDir
		case entry.IsDir(), path.Ext(name) != ".go", strings.HasSuffix(name, "_test.go"):
			return nil
		}
		files[name], err = parser.ParseFile(set, "../../"+name, nil, parser.SkipObjectResolution)
		return err
	}
	require.NoError(t, fs.WalkDir(os.DirFS("../.."), ".", walk))
	for _, read := range []func(ast.Node) bool{r.declare, r.visit} {
		for name, file := range files {
			for _, s := range sections {
				if strings.HasPrefix(name, s.directory) {
					r.section = s.title
				}
			}
			r.pkg = path.Base(path.Dir(name))
			ast.Inspect(file, read)
		}
	}
	for _, err := range whole {
		r.put(theErrors, "holdfast: lock \"‹lock›\": "+err.Error(), true)
	}
	return r
}

// declare remembers constants and variables, to put their texts where they are used.
func (r *reader) declare(n ast.Node) bool {
	if s, ok := n.(*ast.ValueSpec); ok {
		for i := range min(len(s.Names), len(s.Values)) {
			r.values[r.pkg+"."+s.Names[i].Name] = s.Values[i]
		}
	}
	_, function := n.(*ast.FuncDecl)
	return !function
}

// visit finds the texts below n.
func (r *reader) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.Field:
		if n.Tag != nil { // the help of a flag or an argument
			literal, _ := strconv.Unquote(n.Tag.Value)
			help := reflect.StructTag(literal).Get("help")
			r.put(r.section, strings.ReplaceAll(help, "$$", "$"), false)
		}
		return false
	case *ast.CallExpr:
		return r.call(n)
	case *ast.BinaryExpr:
		return n.Op != token.ADD || !r.add(n, nil, false)
	case *ast.BasicLit:
		r.add(n, nil, false)
	}
	return true
}

// call finds the texts in the arguments of a call.
func (r *reader) call(call *ast.CallExpr) bool {
	name := types.ExprString(call.Fun)
	if deaf.MatchString(name) || loggers.MatchString(name) && r.logLine(call.Args) {
		return false
	}
	for i, arg := range call.Args {
		short := i == 0 && name != "fmt.Sprintf" && formats.MatchString(name)
		if !r.add(arg, call.Args[i+1:], short) {
			ast.Inspect(arg, r.visit)
		}
	}
	ast.Inspect(call.Fun, r.visit)
	return false
}

// logLine finds the text of a log line, which begins with "holdfast: ". Keys and values follow.
func (r *reader) logLine(args []ast.Expr) bool {
	for i, arg := range args {
		line, _ := r.text(arg)
		if !strings.HasPrefix(line, "holdfast: ") {
			continue
		}
		for j := i + 1; j+1 < len(args); j += 2 {
			key := r.shown(args[j])
			r.keys[key] = true
			line += " " + key + "=" + r.shown(args[j+1])
		}
		r.put(logLines, line, true)
		return true
	}
	return false
}

// add adds the text of an expression, with the values of args. It returns false if the expression
// is no text, or that of another package.
func (r *reader) add(e ast.Expr, args []ast.Expr, short bool) bool {
	if _, other := e.(*ast.SelectorExpr); other {
		return false
	}
	text, ok := r.text(e)
	r.put(r.section, r.format(text, args), short)
	return ok
}

// put adds a text of several words, or if it may be short, of one word.
func (r *reader) put(section, text string, short bool) {
	own := placeholder.ReplaceAllString(text, "%")
	letters := regexp.MustCompile(`[A-Za-z]{2}`).MatchString(own)
	if letters && (short || severalWords.MatchString(own)) && !data.MatchString(text) {
		r.found[section][text] = true
	}
}

// text returns the text of an expression that has a literal in it.
func (r *reader) text(e ast.Expr) (string, bool) {
	name := types.ExprString(e)
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		name = r.pkg + "." + name
	case *ast.BinaryExpr:
		_, left := r.text(e.X)
		_, right := r.text(e.Y)
		if e.Op == token.ADD && (left || right) {
			return r.shown(e.X) + r.shown(e.Y), true
		}
	case *ast.CallExpr:
		if len(e.Args) > 0 && formats.MatchString(types.ExprString(e.Fun)) {
			text, ok := r.text(e.Args[0])
			return r.format(text, e.Args[1:]), ok
		}
	}
	if value, known := r.values[name]; known {
		return r.text(value)
	}
	return "", false
}

// format puts the values of args, or placeholders, in the place of verbs.
func (r *reader) format(text string, args []ast.Expr) string {
	next := 0
	return verb.ReplaceAllStringFunc(text, func(v string) string {
		match := verb.FindStringSubmatch(v)
		if match[1] != "" {
			next = int(match[1][1] - '1')
		}
		switch {
		case match[2] == "%":
			return "%"
		case next >= len(args):
			return "‹value›"
		}
		next++
		if match[2] == "q" {
			return `"` + r.shown(args[next-1]) + `"`
		}
		return r.shown(args[next-1])
	})
}

// shown returns the text of an expression, or a placeholder. It also finds the texts within.
func (r *reader) shown(e ast.Expr) string {
	if text, ok := r.text(e); ok {
		return text
	}
	ast.Inspect(e, r.visit)
	name := identifier.FindString(passing.ReplaceAllString(types.ExprString(e), ""))
	name = betweenWords.ReplaceAllString(name[strings.LastIndex(name, ".")+1:], "$1$3 $2$4")
	return "‹" + strings.ToLower(cmp.Or(name, "value")) + "›"
}

// page returns docs/messages.md.
func (r *reader) page() string {
	var page strings.Builder
	page.WriteString(messagesHead)
	anchors := map[string]int{}
	for _, s := range sections {
		fmt.Fprintf(&page, "\n## %s\n\n", s.title)
		// In alphabetical order, so that code may move; texts of several lines come last.
		texts := slices.DeleteFunc(slices.SortedFunc(maps.Keys(r.found[s.title]), func(a, b string) int {
			return cmp.Or(strings.Count(a, "\n")-strings.Count(b, "\n"),
				cmp.Compare(strings.ToLower(a), strings.ToLower(b)), cmp.Compare(a, b))
		}), part.MatchString)
		all := strings.Join(texts, "\n\n")
		for _, text := range texts {
			if strings.Count(all, text) > 1 {
				continue // part of another
			}
			own := strings.TrimPrefix(placeholder.ReplaceAllString(text, ""), "holdfast: ")
			first := regexp.MustCompile(`[a-z0-9]+`).FindAllString(strings.ToLower(own), 8)
			anchor := strings.Join(first, "-")
			if anchors[anchor]++; anchors[anchor] > 1 {
				anchor += "-" + strconv.Itoa(anchors[anchor])
			}
			if strings.Contains(strings.Trim(text, "\n"), "\n") {
				fmt.Fprintf(&page, "\n<a id=%q></a>\n\n```text\n%s\n```\n", anchor, strings.Trim(text, "\n"))
			} else {
				text = strings.ReplaceAll(strings.TrimSpace(text), "`", "'")
				fmt.Fprintf(&page, "- <a id=%q></a>`%s`\n", anchor, text)
			}
		}
	}
	return page.String()
}

// TestMessagesArePrinted holds docs/messages.md to the texts in the source.
func TestMessagesArePrinted(t *testing.T) {
	t.Parallel()
	page := readMessages(t).page()
	if *update {
		require.NoError(t, os.WriteFile(messagesFile, []byte(page), 0o600))
		return
	}
	written, err := os.ReadFile(messagesFile)
	require.NoError(t, err)
	require.Equal(t, page, string(written), "go test ./internal/docs -update writes it anew")
}

// unwanted matches what a text must not have. A question that the user answers ends in (y/n).
var unwanted = map[string]*regexp.Regexp{
	"a question":                regexp.MustCompile(`\?$|\? [^(\[]`),
	"a path of this repository": regexp.MustCompile(`(^|[ (])docs/`),
	"a word to avoid": regexp.MustCompile(`(?i)\b(wants?|refuses?d?|forbids?|this very|circles?|` +
		`quickest|give back|gives back|given back|let go|told|hears?|meanwhile|at present)\b`),
	// A user of the program holdfast cannot set what these name.
	goName: regexp.MustCompile(`\b(rlock|redlock|multilock|rueidis)\.[A-Z]|\bOptions\.`),
}

const goName = "a name in Go"

// TestMessagesHaveOneForm holds what can be counted of the rule for messages in CONTRIBUTING.md.
func TestMessagesHaveOneForm(t *testing.T) {
	t.Parallel()
	r := readMessages(t)
	link := regexp.MustCompile(regexp.QuoteMeta(docs.Base) + `([a-z/]+\.md)`)
	for section, texts := range r.found {
		for text := range texts {
			for what, pattern := range unwanted {
				if what != goName || section == theProgram || section == theDoctor {
					require.NotRegexp(t, pattern, placeholder.ReplaceAllString(text, ""), what)
				}
			}
			for _, page := range link.FindAllStringSubmatch(text, -1) {
				require.FileExists(t, "../../docs/"+page[1])
			}
		}
	}
	for key := range r.keys {
		require.Regexp(t, `^[a-z]+$`, key, "a key of a log line is one word")
	}
}
