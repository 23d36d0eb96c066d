package documents_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// screen is how many lines fit on one.
const screen = 56

// TestRecipesAreTestedCode finds each block of Go, SQL and Lua of docs/recipes.md in a file of
// examples, and the functions of a block in a test beside that file, unless the block calls them.
func TestRecipesAreTestedCode(t *testing.T) {
	t.Parallel()
	requireTested(t, "../../docs/recipes.md", func(codeBlock) bool { return true })
}

// TestServiceOfGuideIsTestedCode does the same for the complete program of docs/guide.md, which
// shows how to shut down.
func TestServiceOfGuideIsTestedCode(t *testing.T) {
	t.Parallel()
	requireTested(t, "../../docs/guide.md", codeBlock.isFile)
}

// requireTested fails the test if a block of a page is not tested code.
func requireTested(t *testing.T, page string, selected func(codeBlock) bool) {
	t.Helper()
	files := examples(t)
	checked := 0
	for _, language := range []string{"go", "sql", "lua"} {
		for _, b := range blocks(t, page, language) {
			if !selected(b) {
				continue
			}
			checked++
			dir := ""
			for file, code := range files {
				if !strings.HasSuffix(file, "_test.go") && strings.Contains("\n"+code, "\n"+b.text) {
					dir = filepath.Dir(file)
				}
			}
			if dir == "" {
				t.Errorf("%s, block in line %d: no file of examples has this text; change the page "+
					"and the file together, or add the code to examples/recipes", b.document, b.line)
				continue
			}
			if language != "go" {
				continue
			}
			for _, f := range called(b.parse(t, token.NewFileSet(), nil)) {
				if !namedInTest(files, dir, f) {
					t.Errorf("%s, block in line %d: no test of %s names %s", b.document, b.line, dir, f)
				}
			}
		}
	}
	require.NotZero(t, checked)
}

// examples returns the files of Go in examples.
func examples(t *testing.T) map[string]string {
	t.Helper()
	found, err := filepath.Glob("../../examples/*/*.go")
	require.NoError(t, err)
	files := make(map[string]string)
	for _, file := range found {
		code, err := os.ReadFile(file)
		require.NoError(t, err)
		files[file] = string(code)
	}
	return files
}

// called returns the functions and methods of a block that nothing in the block calls but main.
func called(block *ast.File) (names []string) {
	uses := make(map[string]int)
	for _, d := range block.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Name.Name == "main" {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if name, is := n.(*ast.Ident); is {
				uses[name.Name]++
			}
			return true
		})
	}
	for _, d := range block.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || f.Recv != nil && f.Name.IsExported() { // called through an interface
			continue
		}
		if f.Name.Name != "main" && f.Name.Name != "_" && uses[f.Name.Name] == 1 {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

// namedInTest reports whether a test in a directory names a function.
func namedInTest(files map[string]string, dir, function string) bool {
	name := regexp.MustCompile(`\b` + function + `\b`)
	for file, code := range files {
		if filepath.Dir(file) == dir && strings.HasSuffix(file, "_test.go") && name.MatchString(code) {
			return true
		}
	}
	return false
}

// TestEachRecipeFitsAScreen bounds the sections of docs/recipes.md.
func TestEachRecipeFitsAScreen(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/recipes.md")
	require.NoError(t, err)
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		require.LessOrEqual(t, strings.Count(section, "\n"), screen, title)
	}
}
