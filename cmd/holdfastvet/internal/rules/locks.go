package rules

import (
	"go/ast"
	"go/types"
	"slices"
)

// sameLock reports whether two expressions in one function name the same lock.
func (f *function) sameLock(info *types.Info, x, y ast.Expr) bool {
	x, y = ast.Unparen(x), ast.Unparen(y)
	if types.ExprString(x) == types.ExprString(y) {
		return true
	}
	v, w := objectOf(info, x), objectOf(info, y)
	return v != nil && w != nil && (v == w || f.comesFrom(v, y) || f.comesFrom(w, x))
}

// comesFrom reports whether v is defined once, as e.
func (f *function) comesFrom(v *types.Var, e ast.Expr) bool {
	value := f.definedOnce(v)
	return value != nil && types.ExprString(value) == types.ExprString(e)
}

// unlocksLock reports whether n, or a literal in it, calls lock.Unlock(ctx) of a's lock.
func (f *function) unlocksLock(info *types.Info, a *acquisition, n ast.Node) bool {
	return slices.ContainsFunc(f.unlocks, func(call *ast.CallExpr) bool {
		return within(n, call.Pos()) && f.sameLock(info, lockUnlock(info, call), a.lock)
	})
}

// unlockedElsewhere reports whether another function of the package may call lock.Unlock(ctx) of
// a's lock. The two have an owner in common then, as in code ported from Java. Fields and
// variables of the package count as the same everywhere. So do locks that are made anew by the
// same call, and any that the function was given.
func (f *function) unlockedElsewhere(
	info *types.Info, a *acquisition, unlocks []*ast.CallExpr,
) bool {
	lock := f.origin(info, a.lock)
	return slices.ContainsFunc(unlocks, func(call *ast.CallExpr) bool {
		if within(f.body, call.Pos()) {
			return false // decided by the path
		}
		other := ast.Unparen(lockUnlock(info, call))
		if types.ExprString(lock) == types.ExprString(other) || f.isGiven(info, lock) {
			return true
		}
		v := objectOf(info, lock)
		return v != nil && v == objectOf(info, other)
	})
}

// origin returns the expression that e was defined as, or e.
func (f *function) origin(info *types.Info, e ast.Expr) ast.Expr {
	if v := objectOf(info, e); v != nil && !v.IsField() {
		if value := f.definedOnce(v); value != nil {
			return ast.Unparen(value)
		}
	}
	return ast.Unparen(e)
}

// isGiven reports whether e is a parameter or the receiver of the function, or a variable of the
// function around it.
func (f *function) isGiven(info *types.Info, e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	v := objectOf(info, id)
	return v != nil && !within(f.body, v.Pos()) && v.Parent() != v.Pkg().Scope()
}

// isPassedOn reports whether the lock of a is an argument or a result somewhere in the function:
// then somebody else may unlock it.
func (f *function) isPassedOn(info *types.Info, a *acquisition) bool {
	lock := objectOf(info, a.lock)
	if lock == nil {
		return false
	}
	found := false
	is := func(e ast.Expr) bool { return objectOf(info, e) == lock }
	ast.Inspect(f.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			found = found || slices.ContainsFunc(n.Args, is)
		case *ast.ReturnStmt:
			found = found || slices.ContainsFunc(n.Results, is)
		}
		return !found
	})
	return found
}
