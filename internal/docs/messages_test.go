package docs_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/docs"
)

var update = flag.Bool("update", false, "write docs/messages.md anew")

const (
	messagesFile = "../../docs/messages.md"
	// messagesHead is what a reader sees first.
	messagesHead = `# Messages

This page lists every text of holdfast, so that you can search for a message that you have seen,
and link to it. Each text has an anchor, and sample values stand for the values of your program.

[Errors](errors.md) says what each error means. A test writes this page from the source:
` + "`go test ./internal/docs -update`." + `
`
)

// groups are the sections of the page, by reader.
var groups = []struct{ title, intro string }{
	{"Errors of rlock", "Errors that a lock of one Redis returns. MultiLock and RedLock return them " +
		"as well."},
	{"Errors of multilock", "Errors of a MultiLock, beside those of its locks."},
	{"Errors of redlock", "Errors of a RedLock, and what a QuorumError says of a node."},
	{"Log lines", "Warnings that a client writes to `Options.Logger`, with their keys."},
	{"The program", "Messages and help of `holdfast`. The help of a flag follows the name of the " +
		"flag."},
	{"The doctor", "Lines of `holdfast doctor`: the state, what the check saw, what to do."},
	{"Vet", "Diagnostics and help of `holdfastvet`."},
	{"Tests", "Problems that `rlocktest` reports to a test."},
	{"Redisson's configuration file", "Errors and notes of `redissonyaml`."},
	{"Metrics and traces", "Descriptions of `otel`."},
}

const (
	logLines   = "Log lines"
	theProgram = "The program"
	theDoctor  = "The doctor"
)

// groupOf returns the section of a directory. A directory without a section of its own belongs to
// rlock, because its texts appear in errors of rlock.
func groupOf(dir string) string {
	for _, known := range [][2]string{
		{"multilock", "Errors of multilock"}, {"redlock", "Errors of redlock"},
		{"cmd/holdfast/internal/doctor", theDoctor}, {"cmd/holdfastvet", "Vet"},
		{"cmd/holdfast", theProgram}, {"rlocktest", "Tests"},
		{"redissonyaml", "Redisson's configuration file"}, {"otel", "Metrics and traces"},
	} {
		if dir == known[0] || strings.HasPrefix(dir, known[0]+"/") {
			return known[1]
		}
	}
	return "Errors of rlock"
}

// silent are directories whose texts no user sees: code that only tests and tools of this
// repository use, and the story of the demo.
var silent = regexp.MustCompile(`^(bench|examples|integration|otel/dashboard|` +
	`cmd/holdfast/internal/(demo|terminal)|internal/(doctable|fakeredis|faultproxy|faults|` +
	`fragments|inprocess|locktest|logtest|luashim|mutants|portlock|prose|redistest|servers|` +
	`suite))(/|$)|(^|/)(testdata|\.[^/]*)(/|$)`)

// message is one text.
type message struct {
	text string // with sample values
	key  string // the text without values, of which the anchor is made
}

// prose matches a text of several words.
var prose = regexp.MustCompile(`[A-Za-z%][^ ]* +[^ ]`)

// reader collects the messages of one file.
type reader struct {
	directory string // the last element of the path
	group     string
	constants map[string]ast.Expr // of the package, and of the function that is being read
	used      map[string]bool     // constants that are part of another message
	logs      bool                // a log line is being read
	found     map[string][]message
	missing   map[string]bool // arguments without a sample
	keys      map[string]bool // of log lines
}

// readMessages reads all files that users meet.
func readMessages(t *testing.T) *reader {
	t.Helper()
	r := &reader{found: map[string][]message{}, missing: map[string]bool{}, keys: map[string]bool{}}
	set := token.NewFileSet()
	packages := map[string][]*ast.File{}
	root := os.DirFS("../..")
	require.NoError(t, fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && silent.MatchString(name):
			return fs.SkipDir
		case entry.IsDir(), path.Ext(name) != ".go", strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		require.NoError(t, err)
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		dir := path.Dir(name)
		packages[dir] = append(packages[dir], file)
		return nil
	}))
	for _, dir := range sortedKeys(packages) {
		r.group, r.directory, r.constants = groupOf(dir), path.Base(dir), map[string]ast.Expr{}
		for _, file := range packages[dir] {
			for _, d := range file.Decls {
				r.declare(d)
			}
		}
		r.used = map[string]bool{}
		for _, file := range packages[dir] {
			ast.Inspect(file, r.visit)
		}
		for _, file := range packages[dir] {
			ast.Inspect(file, r.unused)
		}
	}
	return r
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// declare remembers the constants of a declaration, to put their text where they are used.
func (r *reader) declare(n ast.Node) {
	if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
		for _, s := range d.Specs {
			s := s.(*ast.ValueSpec)
			for i := range min(len(s.Names), len(s.Values)) {
				r.constants[s.Names[i].Name] = s.Values[i]
			}
		}
	}
}

// unused finds the messages in constants that nothing else has read.
func (r *reader) unused(n ast.Node) bool {
	if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
		for _, s := range d.Specs {
			s := s.(*ast.ValueSpec)
			for i := range min(len(s.Names), len(s.Values)) {
				if !r.used[s.Names[i].Name] {
					r.add(s.Values[i], nil, false)
				}
			}
		}
	}
	return true
}

// deaf are functions whose arguments are patterns and commands.
var deaf = regexp.MustCompile(`^(MustCompile|Contains|HasPrefix|HasSuffix|TrimPrefix|TrimSuffix|` +
	`Cut|CutPrefix|CutSuffix|Split|Index|LastIndex|LastIndexByte|Replace|ReplaceAll|NewReplacer|` +
	`Sscanf|Sscan|panic|do|run|refuses|tested|with|Arbitrary|WriteString|HasCode)$`)

// findings are functions that return a line of the doctor.
var findings = regexp.MustCompile(`^(ok|warning|failure|unknown)$`)

// loggers are functions that write a log line: their further arguments are keys and values.
var loggers = regexp.MustCompile(`^([wW]arn|log|Error|Info)$`)

// visit finds the messages below n.
func (r *reader) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.GenDecl:
		r.declare(n)
		return n.Tok != token.CONST // its text is read where it is used
	case *ast.FuncDecl:
		ast.Inspect(n, func(n ast.Node) bool {
			if n != nil {
				r.declare(n)
			}
			return true
		})
	case *ast.StructType:
		for _, f := range n.Fields.List {
			r.help(f)
		}
		return false
	case *ast.CallExpr:
		return r.call(n)
	case *ast.BinaryExpr:
		if n.Op == token.ADD {
			return !r.add(n, nil, false)
		}
	case *ast.BasicLit:
		r.add(n, nil, false)
	}
	return true
}

// help finds the help of a flag or an argument in the tag of a field.
func (r *reader) help(f *ast.Field) {
	if f.Tag == nil || len(f.Names) == 0 {
		return
	}
	tag, _ := strconv.Unquote(f.Tag.Value)
	text := reflect.StructTag(tag).Get("help")
	if text == "" || strings.HasPrefix(text, "${") {
		return
	}
	name := cmp.Or(reflect.StructTag(tag).Get("name"), dashed(f.Names[0].Name))
	if !strings.Contains(tag, `cmd:""`) && !strings.Contains(tag, `arg:""`) {
		name = "--" + name
	}
	r.put(r.group, message{name + ": " + strings.ReplaceAll(text, "$$", "$"), name + " " + text})
}

// dashed returns the name of a flag.
func dashed(name string) string {
	return strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "$1-$2"))
}

// call finds the messages in the arguments of a call.
func (r *reader) call(call *ast.CallExpr) bool {
	name := lastName(call.Fun)
	switch {
	case deaf.MatchString(name):
		return false
	case loggers.MatchString(name) && r.logLine(call.Args):
		return false
	case r.group == theDoctor && findings.MatchString(name):
		r.finding(name, call.Args)
		return false
	}
	always := name == "New" || name == "Errorf" || strings.EqualFold(name, "Invalid")
	for i, arg := range call.Args {
		if !r.add(arg, call.Args[i+1:], always && i == 0) {
			ast.Inspect(arg, r.visit)
		}
	}
	ast.Inspect(call.Fun, r.visit)
	return false
}

// logLine finds the message of a log line, which begins with "holdfast: ". It may be behind the
// level.
func (r *reader) logLine(args []ast.Expr) bool {
	for i, arg := range args[:min(2, len(args))] {
		rest := args[i+1:]
		if inner, ok := arg.(*ast.CallExpr); ok && lastName(inner.Fun) == "Sprintf" {
			arg, rest = inner.Args[0], inner.Args[1:]
		}
		text, key, ok := r.text(arg)
		if !ok || !strings.HasPrefix(text, "holdfast: ") {
			continue
		}
		r.logs = true
		defer func() { r.logs = false }()
		text = r.format(text, rest)
		for j := i + 1; j+1 < len(args); j += 2 {
			name, _, ok := r.text(args[j])
			if !ok {
				break // keys that come from somewhere else
			}
			r.keys[name] = true
			text += " " + name + "=" + r.sample(args[j+1])
		}
		r.put(logLines, message{text, key})
		return true
	}
	return false
}

// finding finds a line of the doctor: the arguments are the advice, unless all is well, and the
// text with its values.
func (r *reader) finding(state string, args []ast.Expr) {
	advice := func(arg ast.Expr) string {
		text, _, ok := r.text(arg)
		if !ok {
			text = r.sample(arg)
		}
		return text
	}
	switch state {
	case "ok":
		text, key, _ := r.text(args[0])
		r.put(r.group, message{"ok: " + r.format(text, args[1:]), key})
	case "unknown":
		text := "check by hand " + advice(args[1])
		r.put(r.group, message{"warning: this check failed (NOPERM no permissions); " + text, text})
	default:
		text, key, ok := r.text(args[1])
		if !ok {
			return
		}
		state = map[string]string{"warning": "warning", "failure": "error"}[state]
		r.put(r.group, message{state + ": " + r.format(text, args[2:]) + "; " + advice(args[0]), key})
	}
}

// add adds the message of an expression, with the values of args. It returns false if the
// expression is no text.
func (r *reader) add(e ast.Expr, args []ast.Expr, always bool) bool {
	text, key, ok := r.text(e)
	if ok && (always || prose.MatchString(text)) && !data[text] {
		r.put(r.group, message{r.format(text, args), key})
	}
	return ok
}

// letters matches what a text has of its own.
var letters = regexp.MustCompile(`[A-Za-z]{2}`)

// put adds a message, unless it is known.
func (r *reader) put(group string, m message) {
	if !letters.MatchString(verb.ReplaceAllString(m.key, "")) {
		return // a format that only joins other texts
	}
	for _, known := range r.found[group] {
		if known.text == m.text {
			return
		}
	}
	r.found[group] = append(r.found[group], m)
}

// text returns the text of an expression that has a literal in it, with samples for the rest, and
// the literals alone.
func (r *reader) text(e ast.Expr) (text, key string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", "", false
		}
		text, _ = strconv.Unquote(e.Value)
		return text, text, true
	case *ast.ParenExpr:
		return r.text(e.X)
	case *ast.Ident:
		if value, known := r.constants[e.Name]; known {
			r.used[e.Name] = true
			return r.text(value)
		}
	case *ast.SelectorExpr:
		if x, is := e.X.(*ast.Ident); is && x.Name == "docs" && e.Sel.Name == "Base" {
			return docs.Base, docs.Base, true
		}
	case *ast.BinaryExpr:
		left, leftKey, ok1 := r.text(e.X)
		right, rightKey, ok2 := r.text(e.Y)
		if e.Op != token.ADD || !ok1 && !ok2 {
			return "", "", false
		}
		if !ok1 {
			left = r.sample(e.X)
		}
		if !ok2 {
			right = r.sample(e.Y)
		}
		return left + right, leftKey + " " + rightKey, true
	}
	return "", "", false
}

var verb = regexp.MustCompile(`%(\[\d+\])?[-+#0-9.]*[a-zA-Z%]`)

// format puts samples in the place of verbs.
func (r *reader) format(text string, args []ast.Expr) string {
	next := 0
	return verb.ReplaceAllStringFunc(text, func(v string) string {
		if v == "%%" {
			return "%"
		}
		if at := verb.FindStringSubmatch(v)[1]; at != "" {
			next, _ = strconv.Atoi(strings.Trim(at, "[]"))
			next--
		}
		if next >= len(args) {
			return v
		}
		sample := r.sample(args[next])
		next++
		if strings.HasSuffix(v, "q") {
			return strconv.Quote(sample)
		}
		return sample
	})
}

// sample returns a value for an expression.
func (r *reader) sample(e ast.Expr) string {
	if text, _, ok := r.text(e); ok {
		return text
	}
	if lit, ok := e.(*ast.BasicLit); ok {
		return lit.Value
	}
	name := lastName(e)
	if call, is := e.(*ast.CallExpr); is && len(call.Args) > 0 && formats.MatchString(name) {
		if text, _, ok := r.text(call.Args[0]); ok {
			return r.format(text, call.Args[1:])
		}
	}
	s, ok := samples["log."+name]
	if !ok || !r.logs {
		s, ok = samples[r.directory+"."+name]
	}
	if !ok {
		s, ok = samples[name]
	}
	if !ok {
		r.missing[name] = true
	}
	return s
}

// formats are functions that return a text.
var formats = regexp.MustCompile(`^(Sprintf|Errorf|New|[iI]nvalid)$`)

// lastName returns the name that says what an expression is.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		name := lastName(e.Fun)
		if of, ok := e.Fun.(*ast.SelectorExpr); ok && passing[name] && !isPackage(of.X) {
			return lastName(of.X)
		}
		if passing[name] && len(e.Args) > 0 {
			return lastName(e.Args[0])
		}
		return name
	case *ast.IndexExpr:
		return lastName(e.X)
	case *ast.StarExpr:
		return lastName(e.X)
	case *ast.SliceExpr:
		return lastName(e.X)
	case *ast.BinaryExpr:
		return lastName(e.X)
	case *ast.ParenExpr:
		return lastName(e.X)
	case *ast.TypeAssertExpr:
		return lastName(e.X)
	}
	return fmt.Sprintf("%T", e)
}

// isPackage reports whether x is a package with functions that are in passing.
func isPackage(x ast.Expr) bool {
	name, ok := x.(*ast.Ident)
	return ok && slices.Contains([]string{"cmp", "fmt", "printable", "slices", "strconv", "strings",
		"time", "types"}, name.Name)
}

// passing are functions that change how a value looks, and not what it is.
var passing = map[string]bool{"Round": true, "Truncate": true, "Short": true, "Text": true,
	"String": true, "Error": true, "Abs": true, "Itoa": true, "FormatInt": true, "Format": true,
	"Milliseconds": true, "Or": true, "ToUpper": true, "ToLower": true, "Join": true, "max": true,
	"min": true, "string": true, "int64": true, "Sprint": true, "withoutPrefix": true,
	"ExprString": true, "ToValidUTF8": true, "Replace": true, "ReplaceAll": true,
	"TrimPrefix": true, "TrimSuffix": true, "rune": true, "Sorted": true, "Duration": true,
	"brief": true}

// page returns docs/messages.md.
func (r *reader) page() string {
	var page strings.Builder
	page.WriteString(messagesHead)
	anchors := map[string]int{}
	for _, g := range groups {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n", g.title, g.intro)
		// In alphabetical order, so that code may move; texts of several lines come last.
		found := slices.Clone(r.found[g.title])
		slices.SortStableFunc(found, func(a, b message) int {
			return cmp.Or(strings.Count(a.text, "\n")-strings.Count(b.text, "\n"),
				cmp.Compare(strings.ToLower(a.text), strings.ToLower(b.text)))
		})
		for _, m := range append(whole(g.title), found...) {
			anchor := slug(m.key)
			anchors[anchor]++
			if n := anchors[anchor]; n > 1 {
				anchor += "-" + strconv.Itoa(n)
			}
			if strings.Contains(strings.TrimSpace(m.text), "\n") {
				fmt.Fprintf(&page, "\n<a id=%q></a>\n\n```text\n%s\n```\n\n",
					anchor, strings.Trim(m.text, "\n"))
				continue
			}
			text := strings.ReplaceAll(strings.TrimSpace(m.text), "`", "'")
			page.WriteString(wrapped(fmt.Sprintf("- <a id=%q></a>`%s`", anchor, text)))
		}
	}
	return page.String()
}

// whole returns the errors of a group that are made of several texts, as callers get them.
func whole(group string) (all []message) {
	for _, err := range printed[group] {
		text := err.Error()
		if strings.HasPrefix(group, "Errors of ") && !strings.HasPrefix(text, "holdfast: ") {
			text = `holdfast: lock "order:42": ` + text
		}
		all = append(all, message{text: text, key: fmt.Sprintf("whole %T", err)})
	}
	return all
}

// slug returns an anchor: the first words of a text.
func slug(text string) string {
	words := regexp.MustCompile(`[a-z0-9]+`).FindAllString(
		strings.ToLower(verb.ReplaceAllString(text, "")), -1)
	if len(words) > 1 && words[0] == "holdfast" {
		words = words[1:]
	}
	return strings.Join(words[:min(len(words), 8)], "-")
}

// wrapped breaks a line of Markdown between words.
func wrapped(line string) string {
	const most = 158
	var b strings.Builder
	for len(line) > most {
		at := strings.LastIndex(line[:most], " ")
		if at < 3 {
			break
		}
		b.WriteString(line[:at] + "\n")
		line = "  " + line[at+1:]
	}
	return b.String() + line + "\n"
}

// TestMessagesArePrinted holds docs/messages.md to the texts in the source.
func TestMessagesArePrinted(t *testing.T) {
	t.Parallel()
	r := readMessages(t)
	require.Empty(t, sortedKeys(r.missing), "add a sample for each to the table samples")
	page := r.page()
	if *update {
		require.NoError(t, os.WriteFile(messagesFile, []byte(page), 0o600))
		return
	}
	written, err := os.ReadFile(messagesFile)
	require.NoError(t, err)
	require.Equal(t, page, string(written), "go test ./internal/docs -update writes it anew")
}

// unwanted matches what a message must not have, with the reason.
var unwanted = map[string]*regexp.Regexp{
	"a question":                regexp.MustCompile(`\?$|\? `),
	"a path of this repository": regexp.MustCompile(`(^|[ (])docs/`),
	"a word to avoid": regexp.MustCompile(`(?i)\b(wants?|refuses?d?|forbids?|this very|circles?|` +
		`quickest|give back|gives back|given back|let go|told|hears?|meanwhile|at present)\b`),
}

// goName matches a name of a Go program, which a user of the program holdfast cannot set.
var goName = regexp.MustCompile(`\b(rlock|redlock|multilock|rueidis)\.[A-Z]|\bOptions\.`)

// TestMessagesHaveOneForm holds what can be counted of PROSE.md's rule for messages.
func TestMessagesHaveOneForm(t *testing.T) {
	t.Parallel()
	r := readMessages(t)
	for group, all := range r.found {
		for _, m := range all {
			for what, pattern := range unwanted {
				if bad := pattern.FindString(m.key); bad != "" && !excused[m.key] {
					t.Errorf("%s: %s: %q in %q", group, what, bad, m.text)
				}
			}
			if group == theProgram || group == theDoctor {
				require.NotRegexp(t, goName, m.text, "a name in Go")
			}
			for _, page := range regexp.MustCompile(regexp.QuoteMeta(docs.Base)+`([a-z/]+\.md)`).
				FindAllStringSubmatch(m.text, -1) {
				require.FileExists(t, "../../docs/"+page[1])
			}
		}
	}
	for key := range r.keys {
		require.Regexp(t, `^[a-z]+$`, key, "a key of a log line is one word")
	}
}
