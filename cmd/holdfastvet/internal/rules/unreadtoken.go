package rules

import (
	"fmt"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// UnreadToken reports holds of fenced locks whose token is never read.
var UnreadToken = &analysis.Analyzer{
	Name: "unreadtoken",
	Doc: `report holds of fenced locks whose token is never read

A fenced lock costs a counter in Redis that never expires. It protects nothing until
hold.Token() goes to the resource with each write, and the resource refuses smaller ones:

	hold, err := client.NewFencedLock("ledger").Lock(ctx, rlock.Watchdog)
	...
	return write(hold.Context(), hold.Token(), entry)

It concerns holds of a lock that the function itself made, or a variable of the package,
if they do not leave the function, and rlock.Do and rlock.With, which show no token.
Tests are not looked at.`,
	Requires: []*analysis.Analyzer{acquired, inspect.Analyzer},
	Run:      runUnreadToken,
}

func runUnreadToken(pass *analysis.Pass) (any, error) {
	found := pass.ResultOf[acquired].(*functions)
	for _, f := range found.all {
		for _, a := range f.acquisitions {
			if f.test || a.hold == nil || a.lock == nil ||
				!isFenced(pass.TypesInfo, found.defs, a.lock) || f.mayReadToken(a) {
				continue
			}
			report(pass, a.call, fmt.Sprintf("the token of %s is never read; nothing keeps a holder "+
				"that was stopped beyond its lease from writing; pass %[1]s.Token() to what the lock "+
				"guards, or take client.NewLock", a.hold.Name()))
		}
	}
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	in.Preorder([]ast.Node{(*ast.CallExpr)(nil)}, func(n ast.Node) {
		call := n.(*ast.CallExpr)
		name := rlockFunc(pass.TypesInfo, call)
		if name != "Do" && name != "With" || len(call.Args) != 5 || inTest(pass, call.Pos()) ||
			!isFenced(pass.TypesInfo, found.defs, call.Args[1]) {
			return
		}
		report(pass, call.Args[1], fmt.Sprintf("rlock.%s does not show the token of a fenced lock; "+
			"nothing keeps a holder that was stopped beyond its lease from writing; call Lock and "+
			"pass hold.Token() to what the lock guards, or take client.NewLock", name))
	})
	return nil, nil
}

// isFenced reports whether lock is made by NewFencedLock, there or in its only definition.
func isFenced(info *types.Info, defs definitions, lock ast.Expr) bool {
	lock = ast.Unparen(lock)
	if v := objectOf(info, lock); v != nil {
		if value := defs.once(v); value != nil {
			lock = ast.Unparen(value)
		}
	}
	call, ok := lock.(*ast.CallExpr)
	if !ok {
		return false
	}
	fn := callee(info, call)
	return fn != nil && fn.Name() == "NewFencedLock" && isRlock(fn.Pkg())
}

// mayReadToken reports whether the token of the hold is read, or the hold leaves the function.
func (f *function) mayReadToken(a *acquisition) bool {
	if !f.owns(a) {
		return true
	}
	for _, u := range f.uses[a.hold] {
		if u.kind == leaves || u.method == "Token" || u.method == "Detach" || u.value {
			return true
		}
	}
	return false
}
