package rules

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// wrappers knows the functions that acquire a lock for their callers.
type wrappers struct {
	pass  *analysis.Pass
	defs  definitions
	decls map[*types.Func]*ast.FuncDecl
	known map[*types.Func]bool
}

// handsOver reports whether call gives its caller a hold to release: it returns a hold and an
// error, and is neither of holdfast nor a getter. The text of a function of this package decides.
// Others take a context, and the name says that they acquire something.
func (w *wrappers) handsOver(call *ast.CallExpr) bool {
	info := w.pass.TypesInfo
	if !givesHold(info.TypeOf(call)) {
		return false
	}
	fn := callee(info, call)
	if fn != nil && (isHoldfast(fn.Pkg()) || !givesHold(fn.Origin().Signature().Results())) {
		return false
	}
	if fn != nil && w.decls[fn.Origin()] != nil {
		return w.acquires(fn.Origin())
	}
	return saysAcquire(calledName(call)) && slices.ContainsFunc(call.Args, func(e ast.Expr) bool {
		t := info.TypeOf(e)
		return t != nil && isContext(t)
	})
}

// saysAcquire reports whether the name of a function says that it acquires something.
func saysAcquire(name string) bool {
	name = strings.ToLower(name)
	return !saysRelease(name) && slices.ContainsFunc(
		[]string{"lock", "acquire", "obtain", "claim", "reserve"},
		func(verb string) bool { return strings.Contains(name, verb) })
}

// saysRelease reports whether the name of a function says that it releases something.
func saysRelease(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "unlock") || strings.Contains(name, "release")
}

// acquires reports whether all that a function returns are holds that it acquired and gave to
// nobody else.
func (w *wrappers) acquires(fn *types.Func) bool {
	if known, ok := w.known[fn]; ok {
		return known
	}
	w.known[fn] = false // of a function that calls itself the other returns decide
	found, other := false, false
	results := fn.Signature().Results()
	decl := w.decls[fn]
	inspectShallow(decl.Body, func(n ast.Node) {
		ret, ok := n.(*ast.ReturnStmt)
		switch {
		case !ok || len(ret.Results) > 0 && isNil(w.pass.TypesInfo, ret.Results[0]):
		case len(ret.Results) == 0 && w.isOwn(decl, results.At(0)),
			len(ret.Results) == 1 && w.isNew(ret.Results[0]),
			len(ret.Results) == 2 && w.isOwn(decl, objectOf(w.pass.TypesInfo, ret.Results[0])):
			found = true
		default:
			other = true
		}
	})
	w.known[fn] = found && !other
	return w.known[fn]
}

// isNew reports whether e is a call that acquires a lock.
func (w *wrappers) isNew(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	lock, _ := lockVerb(w.pass.TypesInfo, call)
	return lock != nil || w.handsOver(call)
}

// isOwn reports whether v only has holds that the function acquired, and nobody else gets to
// release them.
func (w *wrappers) isOwn(decl *ast.FuncDecl, v *types.Var) bool {
	if v == nil || v.IsField() || !within(decl, v.Pos()) {
		return false
	}
	found := false
	for _, d := range w.defs[v] {
		switch {
		case d.value == nil || isNil(w.pass.TypesInfo, d.value):
		case w.isNew(d.value):
			found = true
		default:
			return false
		}
	}
	ast.PreorderStack(decl.Body, nil, func(n ast.Node, stack []ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if ok && w.pass.TypesInfo.Uses[id] == v && !w.staysOwn(id, stack) {
			found = false
		}
		return found
	})
	return found
}

// staysOwn reports whether a use of a hold leaves it to the function: returns it, asks it, or
// releases it other than in a literal that may run later.
func (w *wrappers) staysOwn(id *ast.Ident, stack []ast.Node) bool {
	if _, ok := stack[len(stack)-1].(*ast.ReturnStmt); ok {
		return true
	}
	u := classify(w.pass.TypesInfo, id, stack)
	if u.kind == leaves || u.value {
		return false
	}
	for i, n := range stack {
		if literal, ok := n.(*ast.FuncLit); ok && !isDeferred(literal, stack[:i]) {
			return u.kind == looks
		}
	}
	return true
}

// wrapperReleases reports whether the lock that a wrapper acquires may be released without its
// hold: by a function beside the wrapper whose name says so, or by lock.Unlock(ctx) of the lock.
// seen are the wrappers that are being looked at.
func (fs *functions) wrapperReleases(
	info *types.Info, call *ast.CallExpr, seen []*types.Func,
) bool {
	fn := callee(info, call)
	if fn == nil || fs.hasRelease(fn) {
		return true
	}
	if slices.Contains(seen, fn) {
		return false
	}
	seen = append(seen, fn)
	return slices.ContainsFunc(fs.all, func(f *function) bool {
		return f.node == fs.decls[fn.Origin()] &&
			slices.ContainsFunc(f.acquisitions, func(a *acquisition) bool {
				if a.lock == nil {
					return fs.wrapperReleases(info, a.call, seen)
				}
				return f.unlockedElsewhere(info, a, fs)
			})
	})
}

// hasRelease reports whether there is a function beside fn whose name says that it releases
// something, or a method Close that does, and that needs no hold for it.
func (fs *functions) hasRelease(fn *types.Func) bool {
	releases := func(obj types.Object) bool {
		other, ok := obj.(*types.Func)
		return ok && (saysRelease(other.Name()) ||
			other.Name() == "Close" && fs.releasers[other.Origin()]) &&
			!slices.ContainsFunc(slices.Collect(other.Signature().Params().Variables()),
				func(v *types.Var) bool { return isHold(v.Type()) })
	}
	recv := fn.Signature().Recv()
	if recv == nil {
		scope := fn.Pkg().Scope()
		return slices.ContainsFunc(scope.Names(), func(name string) bool {
			return releases(scope.Lookup(name))
		})
	}
	t := recv.Type()
	if _, ok := types.Unalias(t).(*types.Pointer); !ok && !types.IsInterface(t) {
		t = types.NewPointer(t)
	}
	methods := types.NewMethodSet(t)
	for i := range methods.Len() {
		if releases(methods.At(i).Obj()) {
			return true
		}
	}
	return false
}

// releasesByName returns the calls in n of functions whose names say that they release something,
// and which are not methods of a hold or of package sync. They may release the lock of a wrapper.
func releasesByName(info *types.Info, n ast.Node) []*ast.CallExpr {
	var found []*ast.CallExpr
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !saysRelease(calledName(call)) {
			return true
		}
		x, _ := holdMethod(info, call)
		if fn := callee(info, call); x == nil && (fn == nil || !isPackage(fn.Pkg(), "sync")) {
			found = append(found, call)
		}
		return true
	})
	return found
}
