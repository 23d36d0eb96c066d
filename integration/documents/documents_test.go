// Package documents_test checks the code and the links of the README and of docs.
package documents_test

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"holdfast/redlock"
	"holdfast/watchdog"
)

// codeBlock is a block of code in a document. A block of Go is a file, or a fragment with
// declarations or statements.
type codeBlock struct {
	document string
	line     int // of its first line
	text     string
}

// codeBlocks returns the blocks of Go of a document.
func codeBlocks(t *testing.T, document string) []codeBlock {
	t.Helper()
	return blocks(t, document, "go")
}

// blocks returns the blocks of a document that begin with ``` and a language.
func blocks(t *testing.T, document, language string) (blocks []codeBlock) {
	t.Helper()
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	var b *codeBlock
	line := 0
	for text := range strings.Lines(string(content)) {
		line++
		switch fence := strings.TrimRight(text, " \n"); {
		case b == nil && fence == "```"+language:
			b = &codeBlock{document: filepath.Base(document), line: line + 1}
		case b != nil && fence == "```":
			blocks, b = append(blocks, *b), nil
		case b != nil:
			b.text += text
		}
	}
	require.Nil(t, b, "%s: a block has no end", document)
	return blocks
}

// idioms returns what is code in the second column of the tables of Java and Go in porting.md.
func idioms(t *testing.T) (blocks []codeBlock) {
	t.Helper()
	content, err := os.ReadFile("../../docs/porting.md")
	require.NoError(t, err)
	inTable, line := false, 0
	for row := range strings.Lines(string(content)) {
		line++
		switch {
		case row == "| Java | Go |\n":
			inTable = true
			continue
		case row[0] != '|':
			inTable = false
			continue
		case !inTable || row == "|---|---|\n":
			continue
		}
		columns := strings.Split(row, " | ")
		require.Len(t, columns, 2, row)
		code := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(columns[1], -1)
		require.NotEmpty(t, code, row)
		for _, span := range code {
			text := span[1]
			field, isField := strings.CutSuffix(text, ",")
			switch {
			case isField && regexp.MustCompile("^(InitAddress|Sentinel):").MatchString(field):
				text = "_ = rueidis.ClientOption{" + field + "}"
			case isField:
				text = "_ = rlock.Options{" + field + "}"
			case strings.HasSuffix(text, "{"):
				text += "}"
			}
			blocks = append(blocks, codeBlock{document: "porting.md", line: line, text: text})
		}
	}
	require.NotEmpty(t, blocks)
	return blocks
}

// isFile reports whether the block is a whole file.
func (b codeBlock) isFile() bool { return strings.HasPrefix(b.text, "package ") }

// parse returns the block as a file. A fragment becomes one, with the imports that it needs.
func (b codeBlock) parse(t *testing.T, set *token.FileSet, known map[string]string) *ast.File {
	t.Helper()
	name := fmt.Sprintf("%s, block in line %d", b.document, b.line)
	if b.isFile() {
		file, err := parser.ParseFile(set, name, b.text, 0)
		require.NoError(t, err, name)
		return file
	}
	before, after := "package p; ", ""
	file, err := parser.ParseFile(set, name, before+b.text, 0)
	if err != nil {
		before, after = "package p; func _() { ", "\n}"
		file, err = parser.ParseFile(set, name, before+b.text+after, 0)
	}
	require.NoError(t, err, "%s: no file, declarations or statements; begin it with ``` alone if "+
		"it is not to compile", name)

	imports := ""
	ast.Inspect(file, func(n ast.Node) bool {
		if of, ok := n.(*ast.SelectorExpr); ok {
			x, _ := of.X.(*ast.Ident)
			if x == nil || x.Obj != nil {
				return true
			}
			line := fmt.Sprintf("import %q; ", known[x.Name])
			if known[x.Name] != "" && !strings.Contains(imports, line) &&
				!strings.Contains(b.text, strings.TrimPrefix(strings.TrimSuffix(line, "; "), "import ")) {
				imports += line
			}
		}
		return true
	})
	before = strings.Replace(before, "package p; ", "package p; "+imports, 1)
	file, err = parser.ParseFile(set, name, before+b.text+after, 0)
	require.NoError(t, err, name)
	return file
}

// prelude declares what fragments use without saying where it comes from.
const prelude = `package p

import (
	"context"

	"github.com/redis/rueidis"

	"holdfast/rlock"
)

var (
	ctx    context.Context
	redis  rueidis.Client
	client *rlock.Client
	lock   *rlock.Lock
	hold   *rlock.Hold
	err    error
)
`

// tolerated matches what type checkers say of a fragment because it is one: names that it does not
// declare, variables that it does not use, and results of a function that is not shown.
var tolerated = regexp.MustCompile(`^(undefined: \w+$|declared and not used|` +
	`too many return values|missing return|\w+ redeclared|\tother declaration|` +
	`".*" imported and not used)`)

// goList returns the words that go list prints.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	list := exec.Command("go", append([]string{"list"}, args...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// documents returns the README and what is in docs.
func documents(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	return append([]string{"../../README.md"}, found...)
}

// knownPackages returns import paths by the names that fragments call packages: those of our
// modules that are not internal, and some others.
func knownPackages(t *testing.T) map[string]string {
	t.Helper()
	known := map[string]string{
		"context": "context", "errors": "errors", "exec": "os/exec", "fmt": "fmt", "http": "net/http",
		"log": "log", "os": "os", "rand": "math/rand/v2", "slog": "log/slog", "sql": "database/sql",
		"strings": "strings", "sync": "sync", "time": "time",
		"rueidis": "github.com/redis/rueidis", "require": "github.com/stretchr/testify/require",
	}
	for _, found := range goList(t, "holdfast/...") {
		if !strings.Contains(found, "/internal") && !strings.Contains(found, "/cmd/") {
			known[path.Base(found)] = found
		}
	}
	return known
}

// TestCodeInDocumentsCompiles type-checks the Go code in the README and in docs. A fragment may use
// names that it does not declare; whatever it takes from a package must be there.
func TestCodeInDocumentsCompiles(t *testing.T) {
	t.Parallel()
	set, known := token.NewFileSet(), knownPackages(t)
	var blocks []codeBlock
	var files []*ast.File
	var imports []string
	add := func(f *ast.File) {
		files = append(files, f)
		for _, i := range f.Imports {
			imports = append(imports, strings.Trim(i.Path.Value, `"`))
		}
	}
	declared, err := parser.ParseFile(set, "prelude", prelude, 0)
	require.NoError(t, err)
	add(declared)
	for _, document := range documents(t) {
		blocks = append(blocks, codeBlocks(t, document)...)
	}
	require.NotEmpty(t, blocks)
	blocks = append(blocks, idioms(t)...)
	for _, b := range blocks {
		add(b.parse(t, set, known))
	}

	slices.Sort(imports)
	exports := map[string]string{}
	for _, pair := range goList(t, append([]string{"-export", "-deps", "-f",
		"{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}"}, slices.Compact(imports)...)...) {
		imported, export, _ := strings.Cut(pair, "=")
		exports[imported] = export
	}
	compiled := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})

	for i, b := range blocks {
		of := []*ast.File{files[i+1]}
		if !b.isFile() {
			of = append(of, declared)
		}
		config := types.Config{Importer: compiled, Error: func(err error) {
			//nolint:errorlint // a type checker reports nothing else
			if said := err.(types.Error); b.isFile() || !tolerated.MatchString(said.Msg) {
				t.Errorf("%v: %s", set.Position(said.Pos), said.Msg)
			}
		}}
		config.Check(b.document, set, of, nil) //nolint:errcheck // it was reported by Error
		if b.isFile() {
			formatted, err := format.Source([]byte(b.text))
			require.NoError(t, err)
			require.Equal(t, string(formatted), b.text, "gofmt")
		}
	}
}

// TestErrorsPageHasEveryError finds each exported error in docs/errors.md.
func TestErrorsPageHasEveryError(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/errors.md")
	require.NoError(t, err)
	files, err := filepath.Glob("../../r*lock/*.go")
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?m)^(?:var |type |\t)(Err[A-Z]\w*|[A-Z]\w*Error) `)
	for _, file := range files {
		code, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range declared.FindAllSubmatch(code, -1) {
			require.Contains(t, string(page), string(name[1]), file)
		}
	}
}

// TestFiguresOfPerformanceAreMeasured finds the figures of docs/performance.md in bench/results.md,
// in the row of the contestant, below the heading of the scenario.
func TestFiguresOfPerformanceAreMeasured(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/performance.md")
	require.NoError(t, err)
	results, err := os.ReadFile("../../bench/results.md")
	require.NoError(t, err)
	contestants := []string{"holdfast", "rueidislock", "redsync, rueidis", "redislock", "redisson"}
	row := regexp.MustCompile("(?m)^\\|.*\\(`([\\w-]+)`\\) \\| (.*) \\|$")
	rows := row.FindAllStringSubmatch(string(page), -1)
	require.Len(t, rows, 14)
	for _, row := range rows {
		_, below, found := strings.Cut(string(results), "(`"+row[1]+"`)\n")
		require.True(t, found, row[1])
		below, _, _ = strings.Cut(below, "\n### ")
		for i, figure := range strings.Split(row[2], " | ") {
			measured := `(?m)^\| ` + contestants[i] + `[^|]*\|.* ` + regexp.QuoteMeta(figure) + ` \|`
			require.True(t, figure == "-" || regexp.MustCompile(measured).MatchString(below),
				"%s: %s", row[1], figure)
		}
	}
}

// anchors returns the anchors of the headings of a document, as GitHub names them.
func anchors(content string) map[string]bool {
	found := make(map[string]bool)
	content = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(content, "")
	notInAnchor := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(content, -1) {
		name := notInAnchor.ReplaceAllString(strings.ToLower(heading[1]), "")
		found[strings.ReplaceAll(name, " ", "-")] = true
	}
	for _, anchor := range regexp.MustCompile(`<a id="([^"]+)">`).FindAllStringSubmatch(content, -1) {
		found[anchor[1]] = true
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages := append(documents(t), "../../CHANGELOG.md", "../../CONTRIBUTING.md", "../../SECURITY.md",
		"../../bench/README.md", "../README.md", "../model/README.md")
	link := regexp.MustCompile(`\]\(([^)\s]*)\)`)
	for _, page := range pages {
		content, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, found := range link.FindAllStringSubmatch(string(content), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			to, anchor, _ := strings.Cut(found[1], "#")
			target := page
			if to != "" {
				target = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link %s: %v", page, found[1], err)
				continue
			}
			if anchor == "" {
				continue
			}
			of, err := os.ReadFile(target)
			require.NoError(t, err)
			if !anchors(string(of))[anchor] {
				t.Errorf("%s: link %s: %s has no such heading", page, found[1], target)
			}
		}
	}
}

// buildProgram builds holdfast, and returns the path of the binary.
func buildProgram(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "holdfast")
	out, err := exec.Command("go", "build", "-o", program, "holdfast/cmd/holdfast").CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// TestShellInDocuments checks the syntax of shell blocks, and that the commands and flags of
// holdfast that they use are those that its help shows.
func TestShellInDocuments(t *testing.T) {
	t.Parallel()
	program := buildProgram(t)
	server, err := exec.Command(program, "help", "server").Output()
	require.NoError(t, err)
	help := make(map[string]string)
	call := regexp.MustCompile(`(?m)(?:^|\$\(|[|;&] *)holdfast ([a-z]+)([^#\n|]*)`)
	flag := regexp.MustCompile(` (--?[A-Za-z][a-z-]*)`)
	checked := 0
	for _, page := range documents(t) {
		for _, b := range blocks(t, page, "sh") {
			checked++
			syntax := exec.Command("bash", "-n")
			syntax.Stdin = strings.NewReader(b.text)
			out, err := syntax.CombinedOutput()
			require.NoError(t, err, "%s, block in line %d: %s", b.document, b.line, out)
			for _, used := range call.FindAllStringSubmatch(b.text, -1) {
				command := used[1]
				if _, known := help[command]; !known {
					out, err := exec.Command(program, command, "--help").CombinedOutput()
					require.NoError(t, err, "%s, block in line %d: holdfast %s: %s",
						b.document, b.line, command, out)
					help[command] = string(out) + string(server)
				}
				arguments, _, _ := strings.Cut(used[2], " -- ") // what follows is another command
				for _, f := range flag.FindAllStringSubmatch(arguments, -1) {
					documented := regexp.MustCompile(regexp.QuoteMeta(f[1]) + `\b`)
					require.Regexp(t, documented, help[command],
						"%s, block in line %d: holdfast %s has no flag %s", b.document, b.line, command, f[1])
				}
			}
		}
	}
	require.NotZero(t, checked)
}

// TestYAMLInDocumentsParses reads the YAML blocks.
func TestYAMLInDocumentsParses(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, page := range documents(t) {
		for _, b := range blocks(t, page, "yaml") {
			checked++
			var into any
			require.NoError(t, yaml.Unmarshal([]byte(b.text), &into), "%s, block in line %d",
				b.document, b.line)
		}
	}
	require.NotZero(t, checked)
}

func TestPortingNamesTheReleasesThatTestsRunBeside(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("../redisson/releases.txt")
	require.NoError(t, err)
	var releases []string
	for _, line := range regexp.MustCompile(`(?m)^(\d\S+) `).FindAllStringSubmatch(string(list), -1) {
		releases = append(releases, line[1])
	}
	last := len(releases) - 1
	page, err := os.ReadFile("../../docs/porting.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "Tests run beside Redisson "+
		strings.Join(releases[:last], ", ")+" and "+releases[last]+",\n")
}

func TestOperationsStateWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	page := func(name string) string {
		content, err := os.ReadFile("../../docs/" + name)
		require.NoError(t, err)
		return string(content)
	}
	require.Equal(t, time.Second+2*time.Millisecond, watchdog.Drift(100*time.Second))
	require.Contains(t, page("guarantees.md"), "a margin of 1 % + 2 ms")
	for _, field := range reflect.VisibleFields(reflect.TypeFor[redlock.Options]()) {
		require.Contains(t, page("configuration.md"), "\n| `"+field.Name+"` | ")
	}
}

// TestFirstScreenOfREADMEHasTheProgram holds the README to what it is for: a first look.
func TestFirstScreenOfREADMEHasTheProgram(t *testing.T) {
	t.Parallel()
	const mostLines = 150
	content, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	readme := string(content)
	require.LessOrEqual(t, strings.Count(readme, "\n"), mostLines)

	program := codeBlocks(t, "../../README.md")[0]
	require.True(t, program.isFile())
	require.LessOrEqual(t, program.line+strings.Count(program.text, "\n")-1, screen)
	above, _, _ := strings.Cut(readme, program.text)
	for _, command := range []string{"\ngo run ./cmd/holdfast demo ", "\nmake test "} {
		require.Contains(t, above, command, "works on a fresh machine")
	}
}
