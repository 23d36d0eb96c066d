package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// Undeferred reports holds that are released without defer although a panic can come before.
var Undeferred = &analysis.Analyzer{
	Name: "undeferred",
	Doc: `report holds that are released without defer although a panic can come before

If the code between panics, and something recovers, as net/http does for its handlers,
the hold is not given back, and the lock stays locked until its lease ends, or with
rlock.Watchdog for longer:

	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	err = ship(hold.Context())
	return errors.Join(err, hold.Unlock(ctx)) // not reached if ship panics

What can panic is panic itself, and a call of anything that is not of the standard
library or of holdfast: of a function value, of a method of an interface, of a function
of a package of yours or others. A function of the same package that itself calls
nothing of the kind counts as harmless, if it has no index and no type assertion.

A hold that may also leave the function is not reported, because a defer would release
it; neither is one of which Leave or Detach is called, nor anything in a test, where a panic ends the process.`,
	Requires: []*analysis.Analyzer{acquired},
	Run:      runUndeferred,
}

func runUndeferred(pass *analysis.Pass) (any, error) {
	risks := risks{pass: pass, decls: declarations(pass)}
	for _, f := range pass.ResultOf[acquired].(*functions).all {
		if f.test {
			continue
		}
		for _, a := range f.acquisitions {
			if a.node == nil || !a.dropped && !f.owns(a) || f.leaves(a) {
				continue
			}
			release, risk := f.undeferred(&risks, a)
			if release == nil {
				continue
			}
			report(pass, release, fmt.Sprintf("the lock of line %d is released without defer; "+
				"if the call of %s in line %d panics it stays locked; write defer after the check of "+
				"the error, in a function of its own if that is too late, or use rlock.Do",
				line(pass, a.call.Pos()), types.ExprString(risk.Fun), line(pass, risk.Pos())))
		}
	}
	return nil, nil
}

// leaves reports whether the hold of a leaves the function on some path, goes on after it, or is
// given back by a literal.
func (f *function) leaves(a *acquisition) bool {
	for _, u := range f.uses[a.hold] {
		switch {
		case u.kind == leaves, u.method == "Leave", u.method == "Detach":
			return true
		case u.kind == unlocks && u.literal != nil:
			return true
		}
	}
	return false
}

// undeferred finds a release without defer, and the call before it that may panic.
func (f *function) undeferred(r *risks, a *acquisition) (release, risk *ast.CallExpr) {
	w := walk{info: r.pass.TypesInfo, f: f, a: a}
	w.visit = func(n ast.Node, p *path) bool {
		_, isDefer := n.(*ast.DeferStmt)
		call, given := f.releases(r.pass.TypesInfo, a, n)
		if given && (isDefer || call == nil || release != nil) {
			return false
		}
		end := n.End()
		if given {
			end = call.Pos()
		}
		if p.mark == nil && !isDefer {
			if risky := r.first(n, end); risky != nil {
				p.mark = risky
			}
		}
		if given && p.mark != nil {
			release, risk = call, p.mark.(*ast.CallExpr)
		}
		return !given
	}
	w.run()
	return release, risk
}

// releases reports whether n gives the hold of a back, and returns the call of Unlock or UnlockTo,
// or of lock.Unlock, that does so.
func (f *function) releases(info *types.Info, a *acquisition, n ast.Node) (*ast.CallExpr, bool) {
	if a.hold != nil {
		if u, given := f.gives(a, n); given {
			if u.literal == nil && (u.method == "Unlock" || u.method == "UnlockTo") {
				return u.call, true
			}
			return nil, true
		}
	}
	if !f.unlocksLock(info, a, n) {
		return nil, false
	}
	var found *ast.CallExpr
	inspectShallow(n, func(n ast.Node) {
		if call, ok := n.(*ast.CallExpr); ok && found == nil {
			if lock := lockUnlock(info, call); lock != nil && f.sameLock(info, lock, a.lock) {
				found = call
			}
		}
	})
	return found, true
}

// risks knows which calls may panic.
type risks struct {
	pass  *analysis.Pass
	decls map[*types.Func]*ast.FuncDecl
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
	var found *ast.CallExpr
	if _, ok := n.(*ast.GoStmt); ok {
		return nil
	}
	inspectShallow(n, func(n ast.Node) {
		if call, ok := n.(*ast.CallExpr); ok && found == nil && call.End() <= end && r.mayPanic(call, true) {
			found = call
		}
	})
	return found
}

// mayPanic reports whether call may panic. If deep is set, functions of this package that plainly
// cannot are trusted.
func (r *risks) mayPanic(call *ast.CallExpr, deep bool) bool {
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
	decl := r.decls[fn]
	return !deep || decl == nil || !r.plain(decl.Body)
}

// plain reports whether nothing in the body may panic.
func (r *risks) plain(body *ast.BlockStmt) bool {
	plain := true
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			plain = plain && !r.mayPanic(n, false)
		case *ast.IndexExpr, *ast.SliceExpr, *ast.TypeAssertExpr, *ast.SendStmt, *ast.StarExpr:
			plain = false
		case *ast.BinaryExpr:
			plain = plain && n.Op != token.QUO && n.Op != token.REM
		}
		return plain
	})
	return plain
}
