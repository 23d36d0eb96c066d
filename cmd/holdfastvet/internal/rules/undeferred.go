package rules

import (
	"fmt"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// Undeferred reports holds that are released without defer although a panic can come before.
var Undeferred = &analysis.Analyzer{
	Name: "undeferred",
	Doc: `report holds that are released without defer although a panic can come before

If the code between panics, and something recovers, as net/http does for its handlers,
the hold is not released, and the lock stays locked until its lease ends, or with
rlock.Watchdog for longer:

	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	err = ship(hold.Context())
	return errors.Join(err, hold.Unlock()) // not reached if ship panics

The rule assumes that panic itself can panic, and each call outside the standard library
and holdfast: a call of a function value, of a method of an interface, or of a function
of another package. A function without such calls counts as harmless if it has no index,
division, dereference, or type assertion.

The rule does not report a hold that may also leave the function, because a defer would
release it, or a hold on which Leave or Detach is called. It reports nothing in a test,
because a panic ends the process of a test.`,
	Requires: []*analysis.Analyzer{acquired, panics},
	Run:      runUndeferred,
}

func runUndeferred(pass *analysis.Pass) (any, error) {
	risks := pass.ResultOf[panics].(*risks)
	for _, f := range pass.ResultOf[acquired].(*functions).all {
		if f.test {
			continue
		}
		for _, a := range f.acquisitions {
			if a.node == nil || !a.dropped && !f.owns(a) || f.leaves(a) {
				continue
			}
			release, risk := f.undeferred(risks, a)
			if release == nil {
				continue
			}
			report(pass, release, fmt.Sprintf("the lock of line %d is released without defer, "+
				"so a panic in %s in line %d leaves the lock held; write defer after the error check, "+
				"in a separate function if that is too late, or use rlock.Do",
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
	if a.lock == nil {
		return nil, true
	}
	var found *ast.CallExpr
	inspectShallow(n, func(n ast.Node) {
		if call, ok := n.(*ast.CallExpr); ok && found == nil {
			if lockUnlock(info, call) != nil &&
				f.sameLock(receiverOf(info, call), receiverOf(info, a.call)) {
				found = call
			}
		}
	})
	return found, true
}
