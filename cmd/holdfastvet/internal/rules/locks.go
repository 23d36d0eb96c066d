package rules

import (
	"go/ast"
	"go/types"
	"slices"
)

// receiver is the lock of which a method is called.
type receiver struct {
	e    ast.Expr   // as it is written
	v    *types.Var // the variable or field that it is, if it is one: the embedded one, if it is that
	text string     // with the names of embedded fields
}

// receiverOf returns the lock of which call calls a method.
func receiverOf(info *types.Info, call *ast.CallExpr) receiver {
	sel := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	e := ast.Unparen(sel.X)
	r := receiver{e: e, v: objectOf(info, e), text: types.ExprString(e)}
	selection := info.Selections[sel]
	t := selection.Recv()
	for _, i := range selection.Index()[:len(selection.Index())-1] {
		if pointer, ok := t.Underlying().(*types.Pointer); ok {
			t = pointer.Elem()
		}
		fields, ok := t.Underlying().(*types.Struct)
		if !ok {
			break
		}
		r.v = fields.Field(i)
		r.text, t = r.text+"."+r.v.Name(), r.v.Type()
	}
	return r
}

// sameLock reports whether two receivers in one function are the same lock.
func (f *function) sameLock(a, b receiver) bool {
	return a.text == b.text || a.v != nil && b.v != nil && a.v == b.v ||
		f.comesFrom(a.v, b) || f.comesFrom(b.v, a)
}

// comesFrom reports whether v is defined once, as r is written.
func (f *function) comesFrom(v *types.Var, r receiver) bool {
	value := f.definedOnce(v)
	return value != nil && types.ExprString(value) == r.text
}

// unlocksLock reports whether n, or a literal in it, calls lock.Unlock(ctx) of a's lock. The lock
// of a wrapper is not known: any call whose name says that it releases something counts.
func (f *function) unlocksLock(info *types.Info, a *acquisition, n ast.Node) bool {
	if f.callsReleaser(info, n) {
		return true
	}
	if a.lock == nil {
		return len(releasesByName(info, n)) > 0
	}
	return slices.ContainsFunc(f.unlocks, func(call *ast.CallExpr) bool {
		return within(n, call.Pos()) && f.sameLock(receiverOf(info, call), receiverOf(info, a.call))
	})
}

// callsReleaser reports whether n, or a literal in it, calls a function of the package that calls
// lock.Unlock(ctx), such as a method Close. Of which lock is not looked at.
func (f *function) callsReleaser(info *types.Info, n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if fn := callee(info, call); fn != nil {
				found = found || f.release[fn.Origin()]
			}
		}
		return !found
	})
	return found
}

// closedByOwner reports whether the type of which the function is a method, or one that the lock is
// stored in, has a method Close that calls lock.Unlock(ctx).
func (f *function) closedByOwner(info *types.Info, a *acquisition) bool {
	closes := func(t types.Type) bool {
		obj, _, _ := types.LookupFieldOrMethod(t, true, nil, "Close")
		fn, _ := obj.(*types.Func)
		return fn != nil && f.release[fn.Origin()]
	}
	if recv := f.sig.Recv(); recv != nil && closes(recv.Type()) {
		return true
	}
	lock := objectOf(info, a.lock)
	stored := false
	ast.Inspect(f.body, func(n ast.Node) bool {
		if literal, ok := n.(*ast.CompositeLit); ok && lock != nil && closes(info.TypeOf(literal)) {
			ast.Inspect(literal, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				stored = stored || ok && info.Uses[id] == lock
				return !stored
			})
		}
		return !stored
	})
	return stored
}

// unlockedElsewhere reports whether another function of the package may call lock.Unlock(ctx) of
// a's lock. The two have an owner in common then, as in code ported from Java. Fields and
// variables of the package count as the same everywhere. So do locks that are made anew by the
// same call, and any that the function was given.
func (f *function) unlockedElsewhere(
	info *types.Info, a *acquisition, found *functions,
) bool {
	if a.lock == nil {
		return found.wrapperReleases(info, a.call, nil)
	}
	if f.closedByOwner(info, a) {
		return true
	}
	lock := receiverOf(info, a.call)
	origin := f.origin(info, lock.e)
	return slices.ContainsFunc(found.unlocks, func(call *ast.CallExpr) bool {
		if within(f.body, call.Pos()) {
			return false // decided by the path
		}
		other := receiverOf(info, call)
		return f.isGiven(info, origin) || types.ExprString(origin) == other.text ||
			lock.v != nil && lock.v == other.v
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
