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
	Doc: `report releases whose error is ignored

The error of Unlock says whether the lock was held until then. If it was lost
(rlock.ErrLost), somebody else may have had it while the work was done:

	defer hold.Unlock()
	hold.Unlock()

Where the function has a named result for its error, the fix is

	defer hold.UnlockTo(&err)

The rule checks UnlockTo as well. A deferred call runs after the function's result is set,
so the error of the release leaves the function only in a named result.

	func ship(ctx context.Context) error {
		hold, err := lock.Lock(ctx, lease)
		...
		defer hold.UnlockTo(&err) // err is lost: write (err error) above

The error is also lost if := hides the named result in an inner block. In a function
literal the results of the literal count. The rule accepts a variable of the surrounding
function, unless the literal is in a return statement or in an assignment that gives the
variable another value. It also accepts a variable that another literal reads, or whose
address is stored elsewhere.

To ignore the error on purpose, write _ = hold.Unlock().`,
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
		if d := findDeferredTo(pass, call, n.(ast.Stmt), stack); d != nil && d.isLost() {
			d.report()
			return true
		}
		x, name := holdMethod(pass.TypesInfo, call)
		isHold := x != nil && name == "Unlock"
		if !isHold && lockUnlock(pass.TypesInfo, call) == nil {
			return true
		}
		var fixes []analysis.SuggestedFix
		advice := "return the error, or assign it to _"
		if d, ok := n.(*ast.DeferStmt); ok && isHold {
			result := namedError(pass, d, stack)
			advice = unlockToAdvice(call, result, lastError(pass, enclosingFunction(stack)))
			if result != "" {
				sel := ast.Unparen(call.Fun).(*ast.SelectorExpr)
				fixes = append(fixes, analysis.SuggestedFix{
					Message: "join the error to " + result,
					TextEdits: []analysis.TextEdit{
						{Pos: sel.Sel.Pos(), End: sel.Sel.End(), NewText: []byte("UnlockTo")},
						{Pos: call.Rparen, End: call.Rparen, NewText: []byte("&" + result)},
					},
				})
			}
		}
		report(pass, call, fmt.Sprintf("the error of %s is ignored, so a lost lock goes "+
			"unnoticed; %s", types.ExprString(call.Fun), advice), fixes...)
		return true
	})
	return nil, nil
}

// unlockToAdvice says what to write instead of a deferred call of Unlock. result is the name of
// the function's result for errors where that can be used, and last is that result if there is one.
func unlockToAdvice(call *ast.CallExpr, result string, last *types.Var) string {
	hold := types.ExprString(ast.Unparen(call.Fun).(*ast.SelectorExpr).X)
	switch {
	case result != "":
		return fmt.Sprintf("write defer %s.UnlockTo(&%s)", hold, result)
	case last == nil:
		return "check the error in a deferred function, or assign it to _ there"
	case last.Name() == "" || last.Name() == "_":
		return fmt.Sprintf("name the result (err error) and write defer %s.UnlockTo(&err), or "+
			"use rlock.Do", hold)
	}
	return fmt.Sprintf("rename the variable that hides the result %s and write "+
		"defer %s.UnlockTo(&%[1]s), or use rlock.Do", last.Name(), hold)
}

// namedError returns the name of the last result of the innermost function if it is an error, has
// a name, and is what the name means at d.
func namedError(pass *analysis.Pass, d *ast.DeferStmt, stack []ast.Node) string {
	last := lastError(pass, enclosingFunction(stack))
	if last == nil || last.Name() == "_" || lookup(pass, d, last.Name()) != last {
		return ""
	}
	return last.Name()
}
