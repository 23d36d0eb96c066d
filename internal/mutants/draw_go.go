package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// swapped has what becomes of an operator.
var swapped = map[token.Token]struct {
	to   token.Token
	kind string
}{
	token.EQL: {token.NEQ, "comparison"}, token.NEQ: {token.EQL, "comparison"},
	token.LSS: {token.LEQ, "comparison"}, token.LEQ: {token.LSS, "comparison"},
	token.GTR: {token.GEQ, "comparison"}, token.GEQ: {token.GTR, "comparison"},
	token.LAND: {token.LOR, "logical"}, token.LOR: {token.LAND, "logical"},
	token.ADD: {token.SUB, "arithmetic"}, token.SUB: {token.ADD, "arithmetic"},
}

// goStrata returns one stratum per package of the library, with all candidates in Go.
func goStrata(root string) ([]*stratum, error) {
	args := []string{"list", "-f", "{{join .GoFiles \" \"}}"}
	for _, pkg := range library {
		args = append(args, "./"+pkg)
	}
	out, err := command(root, "go", args...)
	if err != nil {
		return nil, err
	}
	exports, err := exportData(root)
	if err != nil {
		return nil, err
	}
	var strata []*stratum
	for i, names := range strings.Split(strings.TrimSpace(out), "\n") {
		p := &goPackage{fset: token.NewFileSet(), files: map[string]*ast.File{}}
		p.importer = importer.ForCompiler(p.fset, "gc", exports)
		s := &stratum{compiles: p.compiles}
		p.sources = map[string]string{}
		for _, name := range strings.Fields(names) {
			file := library[i] + "/" + name
			source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
			if err != nil {
				return nil, err
			}
			p.sources[file] = string(source)
			p.files[file], err = parser.ParseFile(p.fset, file, source, 0)
			if err != nil {
				return nil, err
			}
			s.weight += linesOfCode(string(source))
			w := &walker{fset: p.fset, file: file, source: string(source)}
			ast.Inspect(p.files[file], w.visit)
			s.candidates = append(s.candidates, w.found...)
		}
		strata = append(strata, s)
	}
	return strata, nil
}

// command runs a program and returns what it printed.
func command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}

// exportData returns how to look up what the compiler exported from a package that the library
// imports.
func exportData(root string) (importer.Lookup, error) {
	args := []string{"list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, pkg := range library {
		args = append(args, "./"+pkg)
	}
	out, err := command(root, "go", args...)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for line := range strings.Lines(out) {
		pkg, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[pkg] = file
	}
	return func(pkg string) (io.ReadCloser, error) { return os.Open(files[pkg]) }, nil
}

// goPackage is a package that is type-checked with one file changed.
type goPackage struct {
	fset     *token.FileSet
	files    map[string]*ast.File
	sources  map[string]string
	importer types.Importer
}

func (p *goPackage) compiles(m *mutant) bool {
	source, found := m.mutate(p.sources[m.file])
	if !found {
		panic("cannot find again: " + m.String())
	}
	changed, err := parser.ParseFile(p.fset, m.file, source, 0)
	if err != nil {
		return false
	}
	files := []*ast.File{changed}
	for name, file := range p.files {
		if name != m.file {
			files = append(files, file)
		}
	}
	config := types.Config{Importer: p.importer}
	_, err = config.Check(changed.Name.Name, p.fset, files, nil)
	return err == nil
}

// walker finds the candidates in a file.
type walker struct {
	fset         *token.FileSet
	file, source string
	found        []*mutant
}

// describing matches functions that only make texts for people.
var describing = regexp.MustCompile(`^(String|GoString|Format|LogValue)$`)

// logging matches calls that only tell people.
var logging = regexp.MustCompile(`(?i)\b(log|slog|logger)\b`)

func (w *walker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return !describing.MatchString(n.Name.Name)
	case *ast.CallExpr:
		return !logging.MatchString(w.text(n.Fun))
	case *ast.BinaryExpr:
		if swap, known := swapped[n.Op]; known {
			w.replace(swap.kind, n.OpPos, len(n.Op.String()), swap.to.String())
		}
	case *ast.Ident:
		switch n.Name {
		case "true":
			w.replace("boolean", n.Pos(), len("true"), "false")
		case "false":
			w.replace("boolean", n.Pos(), len("false"), "true")
		}
	case *ast.IfStmt:
		w.visitIf(n)
	case *ast.AssignStmt:
		switch n.Tok {
		case token.ADD_ASSIGN:
			w.replace("arithmetic", n.TokPos, len("+="), "-=")
		case token.SUB_ASSIGN:
			w.replace("arithmetic", n.TokPos, len("-="), "+=")
		}
		if n.Tok != token.DEFINE && w.text(n.Lhs[0]) != "_" {
			w.remove("removed statement", n, n)
		}
	case *ast.ExprStmt:
		if !logging.MatchString(w.text(n.X)) {
			w.remove("removed statement", n, n)
		}
	case *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt:
		w.remove("removed statement", n, n)
	case *ast.CaseClause:
		w.removeBody("removed case", n.Body)
	case *ast.CommClause:
		w.removeBody("removed case", n.Body)
	}
	return true
}

// visitIf negates the condition, unless another mutant does so by its operator, and removes a body
// that leaves early.
func (w *walker) visitIf(n *ast.IfStmt) {
	comparison, isBinary := n.Cond.(*ast.BinaryExpr)
	if !isBinary || comparison.Op != token.EQL && comparison.Op != token.NEQ {
		w.replace("condition", n.Cond.Pos(), len(w.text(n.Cond)), "!("+w.text(n.Cond)+")")
	}
	if len(n.Body.List) == 0 {
		return
	}
	switch n.Body.List[len(n.Body.List)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		w.removeBody("removed body", n.Body.List)
	}
}

func (w *walker) removeBody(kind string, body []ast.Stmt) {
	if len(body) > 0 {
		w.remove(kind, body[0], body[len(body)-1])
	}
}

// remove adds the candidate without the code from one node to another.
func (w *walker) remove(kind string, from, to ast.Node) {
	w.replace(kind, from.Pos(), int(to.End()-from.Pos()), "")
}

// replace adds a candidate.
func (w *walker) replace(kind string, at token.Pos, length int, with string) {
	start := w.fset.Position(at).Offset
	if m := change(w.file, w.source, kind, start, start+length, with); m != nil {
		w.found = append(w.found, m)
	}
}

// text returns the source of a node.
func (w *walker) text(n ast.Node) string {
	start, end := w.fset.Position(n.Pos()).Offset, w.fset.Position(n.End()).Offset
	return w.source[start:end]
}
