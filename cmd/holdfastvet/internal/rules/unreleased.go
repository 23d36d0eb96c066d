package rules

import (
	"fmt"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// Unreleased reports holds that are dropped, or not given back on a path.
var Unreleased = &analysis.Analyzer{
	Name: "unreleased",
	Doc: `report holds that are dropped, or not released on a path

A lock whose hold is not released stays held until its lease ends. With rlock.Watchdog
the lease is renewed until the client is closed or Options.MaxHold is over:

	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	if done {
		return nil // the lock stays held
	}
	return hold.Unlock()

Unlock, UnlockTo, Leave, Detach, and lock.Unlock(ctx) of the same lock release a hold,
also in a function of this package. If a hold is passed to a function, returned, stored,
or released by a function literal, other code is responsible for it, and the same is true
if its Done() or Context() is returned or stored. A hold may be dropped if the lock is of
a type whose method Close calls lock.Unlock(ctx).

A call that returns a hold and an error also acquires a lock if the function is of this
package and does nothing else with the hold, or if the function takes a context and its
name says so (lock, acquire, obtain, claim, reserve). A call of a function whose name says
unlock or release then counts as the release, and the hold may be dropped if there is such
a function beside the one that acquires the lock.

The rule ignores paths on which the acquisition failed or the hold had ended, and paths
that end in a panic or in the end of the program. In a test a hold may be dropped, and
the rule ignores a function that asserts anything about the error except that it is nil.`,
	Requires: []*analysis.Analyzer{acquired},
	Run:      runUnreleased,
}

func runUnreleased(pass *analysis.Pass) (any, error) {
	found := pass.ResultOf[acquired].(*functions)
	for _, f := range found.all {
		for _, a := range f.acquisitions {
			if a.node == nil || !a.dropped && !f.owns(a) || f.test && f.mayFail(pass, a) {
				continue
			}
			if a.dropped && (f.isPassedOn(pass.TypesInfo, a) ||
				f.unlockedElsewhere(pass.TypesInfo, a, found)) {
				continue
			}
			where, lost := f.lostOn(pass, a)
			switch {
			case !lost:
			case a.dropped:
				report(pass, a.call, fmt.Sprintf("the hold of %v is dropped, so %s; keep the hold "+
					"and write defer hold.UnlockTo(&err), or call hold.Leave()", a, a.remains(pass.TypesInfo)))
			default:
				report(pass, a.call, fmt.Sprintf("%s is not released on the path to line %d, so %s; "+
					"write defer %[1]s.Unlock() after the error check",
					a.hold.Name(), line(pass, where.Pos()), a.remains(pass.TypesInfo)))
			}
		}
	}
	return nil, nil
}

// remains says what becomes of a lock that is not given back.
func (a *acquisition) remains(info *types.Info) string {
	if a.lock == nil {
		return "the lock stays held until its lease ends"
	}
	if lease, ok := duration(info, a.lease); ok && lease < 0 {
		return "the lock stays held until the client is closed"
	}
	return "the lock stays held until its lease ends"
}

// owns reports whether the hold is in a variable of the function that nothing gives back behind
// the back of the control flow.
func (f *function) owns(a *acquisition) bool {
	return a.hold != nil && within(f.node, a.hold.Pos()) && !f.givesEarlier(a)
}

// mayFail reports whether a test makes the attempt to see it fail.
func (f *function) mayFail(pass *analysis.Pass, a *acquisition) bool {
	if a.dropped {
		_, assigned := a.node.(*ast.AssignStmt)
		return assigned
	}
	w := walk{info: pass.TypesInfo, f: f, a: a}
	asserted := false
	inspectShallow(f.body, func(n ast.Node) {
		if stmt, ok := n.(*ast.ExprStmt); ok {
			if call, ok := ast.Unparen(stmt.X).(*ast.CallExpr); ok {
				asserted = asserted || w.asserts(call, path{})
			}
		}
	})
	return asserted
}

// lostOn finds a path on which the hold is not given back, and returns where it ends.
func (f *function) lostOn(pass *analysis.Pass, a *acquisition) (where ast.Node, lost bool) {
	if stmt, ok := a.node.(*ast.DeferStmt); ok {
		return stmt, true
	}
	w := walk{info: pass.TypesInfo, f: f, a: a}
	w.visit = func(n ast.Node, _ *path) bool {
		if f.unlocksLock(pass.TypesInfo, a, n) {
			return false
		}
		if _, given := f.gives(a, n); given && a.hold != nil {
			return false
		}
		if f.overwrites(a, n) && where == nil {
			where = n
			return false
		}
		return true
	}
	w.exit = func(ret *ast.ReturnStmt, _ path) {
		if where == nil && !f.isNakedReturnOf(a, ret) {
			where = ret
		}
	}
	w.run()
	return where, where != nil
}

// overwrites reports whether n puts another hold in the variable.
func (f *function) overwrites(a *acquisition, n ast.Node) bool {
	if n == a.node {
		return true
	}
	for _, u := range f.uses[a.hold] {
		if u.kind == assigns && u.literal == nil && within(n, u.id.Pos()) {
			return true
		}
	}
	return false
}

// isNakedReturnOf reports whether ret returns the hold as a named result, without naming it.
func (f *function) isNakedReturnOf(a *acquisition, ret *ast.ReturnStmt) bool {
	if ret.Results != nil || a.hold == nil {
		return false
	}
	for v := range f.sig.Results().Variables() {
		if v == a.hold {
			return true
		}
	}
	return false
}
