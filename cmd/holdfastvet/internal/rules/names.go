package rules

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// isRlock reports whether pkg is holdfast's package rlock, under whatever module path it is
// published. This is the only place that knows.
func isRlock(pkg *types.Package) bool {
	if pkg == nil || !strings.HasSuffix("/"+pkg.Path(), "/rlock") {
		return false
	}
	if strings.Contains(pkg.Path(), "holdfast") {
		return true
	}
	hold, _ := pkg.Scope().Lookup("Hold").(*types.TypeName)
	return hold != nil && looksLikeHold(hold.Type())
}

// looksLikeHold reports whether t has the methods by which a Hold is known.
func looksLikeHold(t types.Type) bool {
	named, ok := t.(*types.Named)
	if !ok {
		return false
	}
	known := 0
	for m := range named.Methods() {
		if slices.Contains([]string{"Context", "Extend", "Token", "Unlock", "Valid"}, m.Name()) {
			known++
		}
	}
	return known == 5
}

// isHold reports whether t is *rlock.Hold.
func isHold(t types.Type) bool {
	pointer, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return false
	}
	named, ok := types.Unalias(pointer.Elem()).(*types.Named)
	return ok && named.Obj().Name() == "Hold" &&
		(isRlock(named.Obj().Pkg()) || named.Obj().Pkg() != nil &&
			strings.HasSuffix("/"+named.Obj().Pkg().Path(), "/rlock") && looksLikeHold(named))
}

// isError reports whether t is error.
func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// isContext reports whether t is context.Context.
func isContext(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == "Context" && isPackage(named.Obj().Pkg(), "context")
}

// isPackage reports whether pkg has one of these paths.
func isPackage(pkg *types.Package, paths ...string) bool {
	return pkg != nil && slices.Contains(paths, pkg.Path())
}

// givesHold reports whether t is (*rlock.Hold, error).
func givesHold(t types.Type) bool {
	results, ok := t.(*types.Tuple)
	return ok && results.Len() == 2 && isHold(results.At(0).Type()) && isError(results.At(1).Type())
}

// method returns the receiver and the name of the method that call calls, or nil.
func method(info *types.Info, call *ast.CallExpr) (ast.Expr, string) {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil, ""
	}
	if s := info.Selections[sel]; s == nil || s.Kind() != types.MethodVal {
		return nil, ""
	}
	return sel.X, sel.Sel.Name
}

// lockVerb returns the name of the method if call acquires a lock: Lock and TryLock of a lock of
// any kind, a user's own included, and Attach of a client.
func lockVerb(info *types.Info, call *ast.CallExpr) (lock ast.Expr, verb string) {
	x, name := method(info, call)
	args := map[string]int{"Lock": 2, "TryLock": 3, "Attach": 3}[name]
	if x == nil || args == 0 || len(call.Args) != args || !givesHold(info.TypeOf(call)) {
		return nil, ""
	}
	return x, name
}

// holdMethod returns the hold and the name of its method that call calls, or nil.
func holdMethod(info *types.Info, call *ast.CallExpr) (ast.Expr, string) {
	x, name := method(info, call)
	if x == nil || !isHold(info.TypeOf(x)) {
		return nil, ""
	}
	return x, name
}

// lockUnlock returns the lock if call is lock.Unlock(ctx) or lock.ForceUnlock(ctx), else nil.
func lockUnlock(info *types.Info, call *ast.CallExpr) ast.Expr {
	x, name := method(info, call)
	if x == nil || name != "Unlock" && name != "ForceUnlock" || !isLock(info.TypeOf(x)) {
		return nil
	}
	return x
}

// isLock reports whether values of type t have a method Lock or TryLock that gives a hold.
func isLock(t types.Type) bool {
	if t == nil || isHold(t) {
		return false
	}
	for _, name := range []string{"Lock", "TryLock"} {
		obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
		if fn, ok := obj.(*types.Func); ok && givesHold(fn.Signature().Results()) {
			return true
		}
	}
	return false
}

// callee returns the function or method that call calls, or nil.
func callee(info *types.Info, call *ast.CallExpr) *types.Func {
	fn, _ := typeutil.Callee(info, call).(*types.Func)
	return fn
}

// rlockFunc returns the name of the function of package rlock that call calls, or "".
func rlockFunc(info *types.Info, call *ast.CallExpr) string {
	if fn := callee(info, call); fn != nil && isRlock(fn.Pkg()) && fn.Signature().Recv() == nil {
		return fn.Name()
	}
	return ""
}

// isStandard reports whether pkg is of Go's standard library: the first element of its path has
// no dot, and it is not the module of the package under analysis.
func isStandard(pkg, from *types.Package) bool {
	first, _, _ := strings.Cut(pkg.Path(), "/")
	module, _, _ := strings.Cut(from.Path(), "/")
	return !strings.Contains(first, ".") && first != module && !isHoldfast(pkg)
}

// isHoldfast reports whether pkg is a package of this library that has to do with locks.
func isHoldfast(pkg *types.Package) bool {
	if isRlock(pkg) {
		return true
	}
	for _, name := range []string{"/multilock", "/redlock"} {
		if strings.HasSuffix(pkg.Path(), name) && strings.Contains(pkg.Path(), "holdfast") {
			return true
		}
	}
	return false
}

// objectOf returns the variable that e is: a name, or a field.
func objectOf(info *types.Info, e ast.Expr) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ := info.ObjectOf(e).(*types.Var)
		return v
	case *ast.SelectorExpr:
		v, _ := info.ObjectOf(e.Sel).(*types.Var)
		return v
	}
	return nil
}

// isNil reports whether e is nil.
func isNil(info *types.Info, e ast.Expr) bool { return info.Types[ast.Unparen(e)].IsNil() }
