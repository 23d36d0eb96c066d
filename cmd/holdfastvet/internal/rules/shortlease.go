package rules

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"time"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// ShortLease reports leases that end during a sleep under the lock, and times without a unit.
var ShortLease = &analysis.Analyzer{
	Name: "shortlease",
	Doc: `report leases that end during a sleep under the lock, and times without a unit

A lock with an explicit lease is over when the lease is, whatever its holder does:

	hold, err := lock.Lock(ctx, rlock.Lease(5*time.Second))
	...
	time.Sleep(10 * time.Second) // somebody else gets the lock meanwhile

Both times have to be constants. A path on which hold.Extend comes before the sleep
is not reported, nor is anything in a test.

A constant wait, lease or option above 0 and below a millisecond that names no unit is
a slip, as from Java, where the unit is an argument of its own:

	lock.TryLock(ctx, 3, 30) // 3 and 30 nanoseconds: 3*time.Second, 30*time.Second

One with a unit, such as 500*time.Microsecond, is left alone.`,
	Requires: []*analysis.Analyzer{acquired, inspect.Analyzer},
	Run:      runShortLease,
}

func runShortLease(pass *analysis.Pass) (any, error) {
	found := pass.ResultOf[acquired].(*functions)
	for _, f := range found.all {
		for _, a := range f.acquisitions {
			if f.test || a.node == nil || a.lock == nil {
				continue
			}
			given := f.origin(pass.TypesInfo, a.lease)
			if inner := converted(pass.TypesInfo, given); inner != nil {
				given = f.origin(pass.TypesInfo, inner)
			}
			lease, ok := duration(pass.TypesInfo, given)
			if !ok || lease <= 0 {
				continue
			}
			f.section(pass, a, func(n ast.Node, _ token.Pos) bool {
				reportSleep(pass, n, lease, line(pass, a.call.Pos()))
				return !callsExtend(pass.TypesInfo, n)
			})
		}
	}
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	in.Preorder([]ast.Node{(*ast.CompositeLit)(nil), (*ast.CallExpr)(nil)}, func(n ast.Node) {
		if inTest(pass, n.Pos()) {
			return
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			reportOptionUnits(pass, found.defs, n.(*ast.CompositeLit))
			return
		}
		reportUnits(pass, found.defs, call)
		literal := underLock(pass.TypesInfo, call)
		if literal == nil {
			return
		}
		if lease, ok := duration(pass.TypesInfo, call.Args[3]); ok && lease > 0 {
			inspectShallow(literal.Body, func(n ast.Node) {
				if stmt, ok := n.(*ast.ExprStmt); ok {
					reportSleep(pass, stmt, lease, line(pass, call.Pos()))
				}
			})
		}
	})
	return nil, nil
}

// reportSleep reports a sleep in n that is not shorter than the lease of the lock of that line.
func reportSleep(pass *analysis.Pass, n ast.Node, lease time.Duration, line int) {
	if _, ok := n.(*ast.GoStmt); ok {
		return
	}
	if _, ok := n.(*ast.DeferStmt); ok {
		return
	}
	inspectShallow(n, func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		fn := callee(pass.TypesInfo, call)
		if fn == nil || fn.Name() != "Sleep" || !isPackage(fn.Pkg(), "time") {
			return
		}
		if sleep, ok := duration(pass.TypesInfo, call.Args[0]); ok && sleep >= lease {
			report(pass, call, fmt.Sprintf("the lease of %v in line %d ends during this sleep of %v; "+
				"somebody else may get the lock meanwhile; give the lease rlock.Watchdog, or call "+
				"hold.Extend before", lease, line, sleep))
		}
	})
}

// duration returns the value of e if it is a constant.
func duration(info *types.Info, e ast.Expr) (time.Duration, bool) {
	value := info.Types[e].Value
	if value == nil || value.Kind() != constant.Int {
		return 0, false
	}
	d, exact := constant.Int64Val(value)
	return time.Duration(d), exact
}

// callsExtend reports whether n calls Extend of a hold.
func callsExtend(info *types.Info, n ast.Node) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			_, name := holdMethod(info, call)
			found = found || name == "Extend"
		}
		return !found
	})
	return found
}
