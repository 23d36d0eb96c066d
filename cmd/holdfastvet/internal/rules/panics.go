package rules

import (
	"go/ast"
	"go/build"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// panics finds out which calls may panic, for undeferred.
var panics = &analysis.Analyzer{
	Name:       "holdfastpanics",
	Doc:        "find functions that cannot panic, for the other analyzers of holdfastvet",
	Run:        findHarmless,
	FactTypes:  []analysis.Fact{new(harmlessFact)},
	ResultType: reflect.TypeFor[*risks](),
}

// harmlessFact says of a function, to the packages that import it, that it cannot panic.
type harmlessFact struct{}

// AFact makes it a fact.
func (*harmlessFact) AFact() {}

// String is for tests of analyzers.
func (*harmlessFact) String() string { return "harmless" }

// risks knows which calls may panic.
type risks struct {
	pass  *analysis.Pass
	decls map[*types.Func]*ast.FuncDecl
	plain map[*types.Func]bool // what is known of decls; false too while that is found out
}

func findHarmless(pass *analysis.Pass) (any, error) {
	r := &risks{pass: pass, decls: declarations(pass), plain: make(map[*types.Func]bool)}
	if inGoroot(pass) {
		return r, nil // no call of the standard library counts, and its facts are many
	}
	for fn := range r.decls {
		if r.isPlain(fn) && fn.Exported() {
			pass.ExportObjectFact(fn, new(harmlessFact))
		}
	}
	return r, nil
}

// inGoroot reports whether the package was found in Go's own directory. It may miss that.
func inGoroot(pass *analysis.Pass) bool {
	root := filepath.Join(build.Default.GOROOT, "src") + string(filepath.Separator)
	return len(pass.Files) > 0 &&
		strings.HasPrefix(pass.Fset.Position(pass.Files[0].FileStart).Filename, root)
}

// declarations returns the functions that are declared in the package.
func declarations(pass *analysis.Pass) map[*types.Func]*ast.FuncDecl {
	decls := make(map[*types.Func]*ast.FuncDecl)
	for _, file := range pass.Files {
		for _, d := range file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				if fn, ok := pass.TypesInfo.Defs[d.Name].(*types.Func); ok {
					decls[fn] = d
				}
			}
		}
	}
	return decls
}

// first returns the first call in n that ends before end and may panic, or nil.
func (r *risks) first(n ast.Node, end token.Pos) *ast.CallExpr {
	if _, ok := n.(*ast.GoStmt); ok {
		return nil
	}
	var found *ast.CallExpr
	inspectShallow(n, func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if ok && found == nil && call.End() <= end && r.mayPanic(call) {
			found = call
		}
	})
	return found
}

// mayPanic reports whether call may panic.
func (r *risks) mayPanic(call *ast.CallExpr) bool {
	info := r.pass.TypesInfo
	fun := ast.Unparen(call.Fun)
	if info.Types[fun].IsType() {
		return false
	}
	if info.Types[fun].IsBuiltin() {
		return types.ExprString(fun) == "panic"
	}
	if lock, _ := lockVerb(info, call); lock != nil || lockUnlock(info, call) != nil {
		return false
	}
	fn := callee(info, call)
	switch {
	case fn == nil:
		return true
	case fn.Pkg() == nil, isTestify(fn), isHoldfast(fn.Pkg()), isStandard(fn.Pkg(), r.pass.Pkg):
		return false
	}
	fn = fn.Origin()
	return !r.isPlain(fn) && !r.pass.ImportObjectFact(fn, new(harmlessFact))
}

// isPlain reports whether nothing in a function of this package may panic.
func (r *risks) isPlain(fn *types.Func) bool {
	plain, known := r.plain[fn]
	if known || r.decls[fn] == nil {
		return plain
	}
	r.plain[fn] = false // for functions that call each other
	plain = true
	ast.Inspect(r.decls[fn].Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			plain = plain && !r.mayPanic(n)
		case *ast.IndexExpr, *ast.SliceExpr, *ast.TypeAssertExpr, *ast.SendStmt, *ast.StarExpr:
			plain = false
		case *ast.BinaryExpr:
			plain = plain && n.Op != token.QUO && n.Op != token.REM
		}
		return plain
	})
	r.plain[fn] = plain
	return plain
}
