package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// deferredTo is a hold.UnlockTo(&v) that runs when a function returns.
type deferredTo struct {
	pass *analysis.Pass
	call *ast.CallExpr
	at   ast.Stmt
	v    *types.Var
	fn   ast.Node   // the function at whose end it runs
	out  []ast.Node // what encloses fn
}

// findDeferredTo returns what call is if it is a deferred UnlockTo with the address of a local
// variable, or nil. In a literal that is deferred itself the function around it counts, unless
// the variable is of the literal.
func findDeferredTo(
	pass *analysis.Pass, call *ast.CallExpr, at ast.Stmt, stack []ast.Node,
) *deferredTo {
	if _, name := holdMethod(pass.TypesInfo, call); name != "UnlockTo" || len(call.Args) != 1 {
		return nil
	}
	address, ok := ast.Unparen(call.Args[0]).(*ast.UnaryExpr)
	if !ok || address.Op != token.AND {
		return nil
	}
	id, ok := ast.Unparen(address.X).(*ast.Ident)
	if !ok {
		return nil
	}
	v, ok := pass.TypesInfo.Uses[id].(*types.Var)
	if !ok || v.Parent() == v.Pkg().Scope() {
		return nil
	}
	d := &deferredTo{pass: pass, call: call, at: at, v: v}
	_, deferred := at.(*ast.DeferStmt)
	for i := len(stack) - 1; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.FuncDecl:
			if !deferred {
				return nil
			}
			d.fn, d.out = n, stack[:i]
			return d
		case *ast.FuncLit:
			if !within(n, v.Pos()) && isDeferred(n, stack[:i]) {
				deferred = true
				continue
			}
			if !deferred {
				return nil
			}
			d.fn, d.out = n, stack[:i]
			return d
		}
	}
	return nil
}

// isDeferred reports whether a defer statement calls the literal. stack is what encloses it.
func isDeferred(literal *ast.FuncLit, stack []ast.Node) bool {
	if len(stack) < 2 {
		return false
	}
	call, ok := stack[len(stack)-1].(*ast.CallExpr)
	if !ok || ast.Unparen(call.Fun) != literal {
		return false
	}
	_, ok = stack[len(stack)-2].(*ast.DeferStmt)
	return ok
}

// isLost reports whether nobody sees what UnlockTo writes to the variable.
func (d *deferredTo) isLost() bool {
	if !within(d.fn, d.v.Pos()) {
		return d.isOverwritten() && !d.isReadElsewhere()
	}
	return !isResult(d.pass, d.fn, d.v) && !d.isReadElsewhere()
}

// isResult reports whether v is a result of fn.
func isResult(pass *analysis.Pass, fn ast.Node, v *types.Var) bool {
	sig := signature(pass.TypesInfo, fn)
	return sig == nil || slices.Contains(slices.Collect(sig.Results().Variables()), v)
}

// isOverwritten reports whether the function is a literal in a statement that gives the variable,
// which is one of a function around it, another value afterwards: return run(func() error {…}),
// or err = run(func() error {…}). A literal without an error may be kept by an assignment.
func (d *deferredTo) isOverwritten() bool {
	for i, n := range slices.Backward(d.out) {
		switch n := n.(type) {
		case *ast.ReturnStmt:
			owner := enclosingFunction(d.out[:i])
			return owner != nil && within(owner, d.v.Pos()) && isResult(d.pass, owner, d.v)
		case *ast.AssignStmt:
			return lastError(d.pass, d.fn) != nil && slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool {
				return objectOf(d.pass.TypesInfo, e) == d.v
			})
		case *ast.BlockStmt:
			return false
		}
	}
	return false
}

// enclosingFunction returns the innermost function of a stack, or nil.
func enclosingFunction(stack []ast.Node) ast.Node {
	for _, n := range slices.Backward(stack) {
		switch n.(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			return n
		}
	}
	return nil
}

// isReadElsewhere reports whether something may look at the variable after the release: a literal
// other than the one with the release, or code that has its address.
func (d *deferredTo) isReadElsewhere() bool {
	info, read := d.pass.TypesInfo, false
	root := d.fn
	if len(d.out) > 1 { // the file is first, the declaration second
		root = d.out[1]
	}
	ast.PreorderStack(root, nil, func(n ast.Node, stack []ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || info.Uses[id] != d.v || within(d.call, id.Pos()) || isAssigned(id, stack) {
			return true
		}
		if isAddress(stack) {
			if call := callAround(stack); call != nil {
				if _, name := holdMethod(info, call); name == "UnlockTo" {
					return true
				}
			}
			read = true
		}
		for _, outer := range stack {
			literal, ok := outer.(*ast.FuncLit)
			read = read || ok && literal != d.fn && !within(literal, d.v.Pos()) &&
				!within(literal, d.call.Pos())
		}
		return true
	})
	return read
}

// isAssigned reports whether the innermost node of the stack assigns to id.
func isAssigned(id *ast.Ident, stack []ast.Node) bool {
	assign, ok := stack[len(stack)-1].(*ast.AssignStmt)
	return ok && slices.Contains(assign.Lhs, ast.Expr(id))
}

// isAddress reports whether the innermost node of the stack takes an address.
func isAddress(stack []ast.Node) bool {
	unary, ok := stack[len(stack)-1].(*ast.UnaryExpr)
	return ok && unary.Op == token.AND
}

// callAround returns the call of which the innermost node of the stack is an argument, or nil.
func callAround(stack []ast.Node) *ast.CallExpr {
	if len(stack) < 2 {
		return nil
	}
	call, _ := stack[len(stack)-2].(*ast.CallExpr)
	return call
}

// report reports the call.
func (d *deferredTo) report() {
	v, hold := d.v.Name(), types.ExprString(ast.Unparen(d.call.Fun).(*ast.SelectorExpr).X)
	last := lastError(d.pass, d.fn)
	var instead string
	var fixes []analysis.SuggestedFix
	switch {
	case last == nil:
		instead = fmt.Sprintf("check the error of %s.Unlock in a deferred function, or use rlock.Do",
			hold)
	case last.Name() == "" || last.Name() == "_":
		instead = "name the result (err error), or use rlock.Do"
	case lookup(d.pass, d.at, last.Name()) == last:
		instead = fmt.Sprintf("write &%s, or use rlock.Do", last.Name())
		fixes = append(fixes, fix("join the error to "+last.Name(), d.call.Args[0], "&"+last.Name()))
	default:
		instead = fmt.Sprintf("it hides the result %s of line %d; rename one of the two, or use "+
			"rlock.Do", last.Name(), line(d.pass, last.Pos()))
	}
	report(d.pass, d.call, fmt.Sprintf("&%s is not a named result of this function, so the error of "+
		"the release is lost; %s", v, instead), fixes...)
}

// lastError returns the last result of fn if it is an error, or nil.
func lastError(pass *analysis.Pass, fn ast.Node) *types.Var {
	sig := signature(pass.TypesInfo, fn)
	if sig == nil || sig.Results().Len() == 0 {
		return nil
	}
	last := sig.Results().At(sig.Results().Len() - 1)
	if !isError(last.Type()) {
		return nil
	}
	return last
}
