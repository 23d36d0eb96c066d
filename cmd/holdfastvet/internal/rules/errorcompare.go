package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// ErrorCompare reports comparisons of errors with those of holdfast.
var ErrorCompare = &analysis.Analyzer{
	Name: "errorcompare",
	Doc: `report comparisons with errors of holdfast by == or switch

The errors of holdfast wrap rlock.ErrNotAcquired and others, with details. So such a
comparison is never true, and the program does not handle the case:

	if err == rlock.ErrNotAcquired { // never
		return nil
	}
	switch err {
	case rlock.ErrLost: // never
	}

The fix of a comparison is

	errors.Is(err, rlock.ErrNotAcquired)

The rule checks errors that a call returned and, outside of tests, variables and fields
with the name err. It accepts a comparison in a method Is(error) bool, which errors.Is
calls with an unwrapped error, and a comparison with rlock.ErrReleased, which is the cause
of the context of a released hold.`,
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      runErrorCompare,
}

func runErrorCompare(pass *analysis.Pass) (any, error) {
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	defs := findDefinitions(pass)
	kinds := []ast.Node{(*ast.BinaryExpr)(nil), (*ast.SwitchStmt)(nil)}
	in.WithStack(kinds, func(n ast.Node, push bool, stack []ast.Node) bool {
		if !push || isIsMethod(pass.TypesInfo, stack) {
			return push
		}
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op != token.EQL && n.Op != token.NEQ {
				return true
			}
			err, sentinel := n.X, n.Y
			if sentinelName(pass.TypesInfo, sentinel) == "" {
				err, sentinel = sentinel, err
			}
			name := sentinelName(pass.TypesInfo, sentinel)
			if name == "" || !mayWrap(pass.TypesInfo, defs, err, inTest(pass, n.Pos())) {
				return true
			}
			is := fmt.Sprintf("errors.Is(%s, %s)", source(pass, err), source(pass, sentinel))
			if n.Op == token.NEQ {
				is = "!" + is
			}
			var fixes []analysis.SuggestedFix
			if pkg, ok := lookup(pass, n, "errors").(*types.PkgName); ok &&
				isPackage(pkg.Imported(), "errors") {
				fixes = append(fixes, fix("compare with errors.Is", n, is))
			}
			report(pass, n, fmt.Sprintf("%s never equals %s, because errors of holdfast wrap %[2]s; "+
				"write %s", types.ExprString(err), name, is), fixes...)
		case *ast.SwitchStmt:
			if n.Tag == nil || !mayWrap(pass.TypesInfo, defs, n.Tag, inTest(pass, n.Pos())) {
				return true
			}
			for _, clause := range n.Body.List {
				for _, value := range clause.(*ast.CaseClause).List {
					if name := sentinelName(pass.TypesInfo, value); name != "" {
						report(pass, value, fmt.Sprintf("%s never equals %s, because errors of holdfast "+
							"wrap %[2]s; write switch { case errors.Is(%[1]s, %[2]s): }",
							types.ExprString(n.Tag), name))
					}
				}
			}
		}
		return true
	})
	return nil, nil
}

// sentinelName returns the name of the error of holdfast that e is, as in "rlock.ErrLost", or "".
func sentinelName(info *types.Info, e ast.Expr) string {
	v := objectOf(info, e)
	if v == nil || v.IsField() || !isHoldfast(v.Pkg()) || v.Parent() != v.Pkg().Scope() ||
		!isError(v.Type()) || v.Name() == "ErrReleased" {
		return ""
	}
	return v.Pkg().Name() + "." + v.Name()
}

// mayWrap reports whether e is an error as calls return them: not one that is compared with others
// in a table, and not one that was unwrapped.
func mayWrap(info *types.Info, defs definitions, e ast.Expr, test bool) bool {
	e = ast.Unparen(e)
	if t := info.TypeOf(e); t == nil || !isError(t) {
		return false
	}
	if call, ok := e.(*ast.CallExpr); ok {
		fn := callee(info, call)
		return fn == nil || fn.Name() != "Unwrap"
	}
	v := objectOf(info, e)
	if v == nil {
		return false
	}
	returned := false
	for _, d := range defs[v] {
		if d.value == nil {
			continue // a parameter, or of a table
		}
		if call, ok := ast.Unparen(d.value).(*ast.CallExpr); ok {
			if fn := callee(info, call); fn != nil && fn.Name() == "Unwrap" {
				return false
			}
			returned = true
		}
	}
	return returned || !test && strings.Contains(strings.ToLower(v.Name()), "err")
}

// isIsMethod reports whether stack is in a method Is(error) bool.
func isIsMethod(info *types.Info, stack []ast.Node) bool {
	for _, n := range stack {
		decl, ok := n.(*ast.FuncDecl)
		if !ok || decl.Recv == nil || decl.Name.Name != "Is" {
			continue
		}
		if sig := signature(info, decl); sig != nil && sig.Params().Len() == 1 &&
			isError(sig.Params().At(0).Type()) {
			return true
		}
	}
	return false
}
