package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// section visits each statement that runs between the acquisition and the release, once with each
// mark that visit keeps on the path. A defer is no release: the section then lasts until the
// function returns. Where the hold leaves the function, the section ends, because nobody knows for
// how long it lasts. What comes after end in a statement runs after the release. visit returns
// false to end the section on this path.
func (f *function) section(
	pass *analysis.Pass, a *acquisition, visit func(n ast.Node, end token.Pos, p *path) bool,
) {
	type visited struct {
		n    ast.Node
		mark ast.Node
	}
	seen := make(map[visited]bool)
	w := walk{info: pass.TypesInfo, f: f, a: a}
	w.visit = func(n ast.Node, p *path) bool {
		if n == a.node {
			return false // the next acquisition, in a loop
		}
		if _, isDefer := n.(*ast.DeferStmt); isDefer {
			return true
		}
		end := n.End()
		call, given := f.releases(pass.TypesInfo, a, n)
		if given {
			if call == nil {
				return false
			}
			end = call.Pos()
		}
		if before := (visited{n, p.mark}); !seen[before] {
			seen[before] = true
			if !visit(n, end, p) {
				return false
			}
		}
		return !given
	}
	w.run()
}

// underLock returns the function that call runs under a lock, if call is of rlock.Do or rlock.With
// and the function is a literal.
func underLock(info *types.Info, call *ast.CallExpr) *ast.FuncLit {
	if name := rlockFunc(info, call); name != "Do" && name != "With" || len(call.Args) != 5 {
		return nil
	}
	literal, _ := ast.Unparen(call.Args[4]).(*ast.FuncLit)
	return literal
}

// firstParam returns the first parameter of a literal, or nil if it has no name.
func firstParam(info *types.Info, literal *ast.FuncLit) *types.Var {
	params := literal.Type.Params.List
	if len(params) == 0 || len(params[0].Names) == 0 || params[0].Names[0].Name == "_" {
		return nil
	}
	v, _ := info.Defs[params[0].Names[0]].(*types.Var)
	return v
}

// inTest reports whether pos is in a test.
func inTest(pass *analysis.Pass, pos token.Pos) bool {
	return strings.HasSuffix(pass.Fset.Position(pos).Filename, "_test.go")
}
