package rules

import (
	"fmt"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// UnlockError reports releases whose error is dropped.
var UnlockError = &analysis.Analyzer{
	Name: "unlockerror",
	Doc: `report releases whose error is dropped

The error of Unlock says whether the lock was held until then. If it was lost
(rlock.ErrLost), somebody else may have had it while the work was done:

	defer hold.Unlock(ctx)
	hold.Unlock(ctx)

Where the function has a named result for its error, the fix is

	defer hold.UnlockTo(ctx, &err)

A blank identifier says that the error is not wanted: _ = hold.Unlock(ctx).`,
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      runUnlockError,
}

func runUnlockError(pass *analysis.Pass) (any, error) {
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	kinds := []ast.Node{(*ast.ExprStmt)(nil), (*ast.DeferStmt)(nil), (*ast.GoStmt)(nil)}
	in.WithStack(kinds, func(n ast.Node, push bool, stack []ast.Node) bool {
		if !push {
			return true
		}
		var call *ast.CallExpr
		switch n := n.(type) {
		case *ast.ExprStmt:
			call, _ = ast.Unparen(n.X).(*ast.CallExpr)
		case *ast.DeferStmt:
			call = n.Call
		case *ast.GoStmt:
			call = n.Call
		}
		if call == nil {
			return true
		}
		x, name := holdMethod(pass.TypesInfo, call)
		isHold := x != nil && name == "Unlock"
		if !isHold && lockUnlock(pass.TypesInfo, call) == nil {
			return true
		}
		var fixes []analysis.SuggestedFix
		result := ""
		if d, ok := n.(*ast.DeferStmt); ok && isHold {
			if result = namedError(pass, d, stack); result != "" && len(call.Args) == 1 {
				sel := ast.Unparen(call.Fun).(*ast.SelectorExpr)
				fixes = append(fixes, analysis.SuggestedFix{
					Message: "join the error to " + result,
					TextEdits: []analysis.TextEdit{
						{Pos: sel.Sel.Pos(), End: sel.Sel.End(), NewText: []byte("UnlockTo")},
						{Pos: call.Args[0].End(), End: call.Args[0].End(), NewText: []byte(", &" + result)},
					},
				})
			}
		}
		report(pass, call, unlockErrorMessage(call, result, isHold), fixes...)
		return true
	})
	return nil, nil
}

// unlockErrorMessage says what is wrong with a call. result is the named result for errors.
func unlockErrorMessage(call *ast.CallExpr, result string, isHold bool) string {
	instead := "return the error, or write _ = if it is not wanted"
	if isHold && result == "" {
		instead = "return the error, as defer hold.UnlockTo(ctx, &err) does, " +
			"or write _ = if it is not wanted"
	} else if isHold {
		instead = fmt.Sprintf("write defer %s.UnlockTo(ctx, &%s)",
			types.ExprString(ast.Unparen(call.Fun).(*ast.SelectorExpr).X), result)
	}
	return fmt.Sprintf("the error of %s is dropped; nobody hears that the lock was lost during the "+
		"work; %s", types.ExprString(call.Fun), instead)
}

// namedError returns the name of the last result of the innermost function if it is an error, has
// a name, and is what the name means at d.
func namedError(pass *analysis.Pass, d *ast.DeferStmt, stack []ast.Node) string {
	for i := len(stack) - 1; i >= 0; i-- {
		sig := signature(pass.TypesInfo, stack[i])
		if sig == nil {
			continue
		}
		results := sig.Results()
		if results.Len() == 0 {
			return ""
		}
		last := results.At(results.Len() - 1)
		if last.Name() == "" || last.Name() == "_" || !isError(last.Type()) ||
			lookup(pass, d, last.Name()) != last {
			return ""
		}
		return last.Name()
	}
	return ""
}
