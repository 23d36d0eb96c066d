package rules

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"time"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// Units reports times without a unit.
var Units = &analysis.Analyzer{
	Name: "units",
	Doc: `report times without a unit

A constant wait, lease, or option between 0 and a millisecond without a unit is usually a
mistake, because in Java the unit is a separate argument:

	lock.TryLock(ctx, 3, 30) // 3*time.Second, rlock.Lease(30*time.Second)

Both are nanoseconds. The rule accepts a time with a unit, such as 500*time.Microsecond,
and each time in a test.`,
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      runUnits,
}

func runUnits(pass *analysis.Pass) (any, error) {
	defs := findDefinitions(pass)
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	in.Preorder([]ast.Node{(*ast.CompositeLit)(nil), (*ast.CallExpr)(nil)}, func(n ast.Node) {
		if inTest(pass, n.Pos()) {
			return
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			reportUnits(pass, defs, n)
		case *ast.CompositeLit:
			reportOptionUnits(pass, defs, n)
		}
	})
	return nil, nil
}

// reportUnits reports the constant waits and leases of a call of holdfast that are shorter than a
// millisecond because they have no unit.
func reportUnits(pass *analysis.Pass, defs definitions, call *ast.CallExpr) {
	if !takesTimes(pass.TypesInfo, call) {
		return
	}
	for _, arg := range call.Args {
		switch t := pass.TypesInfo.TypeOf(arg); {
		case isLease(t):
			reportUnit(pass, defs, arg, "lease")
		case isDuration(t):
			reportUnit(pass, defs, arg, "wait")
		}
	}
}

// reportOptionUnits does the same for the times in a literal of a struct of holdfast.
func reportOptionUnits(pass *analysis.Pass, defs definitions, lit *ast.CompositeLit) {
	named, ok := types.Unalias(pass.TypesInfo.TypeOf(lit)).(*types.Named)
	if !ok || named.Obj().Pkg() == nil || !isHoldfast(named.Obj().Pkg()) {
		return
	}
	for _, elt := range lit.Elts {
		pair, ok := elt.(*ast.KeyValueExpr)
		if !ok || !isDuration(pass.TypesInfo.TypeOf(pair.Value)) {
			continue
		}
		if key, ok := pair.Key.(*ast.Ident); ok {
			reportUnit(pass, defs, pair.Value, key.Name)
		}
	}
}

// takesTimes reports whether call is one of holdfast with a wait or a lease.
func takesTimes(info *types.Info, call *ast.CallExpr) bool {
	if lock, _ := lockVerb(info, call); lock != nil {
		return true
	}
	if hold, name := holdMethod(info, call); hold != nil {
		return name == "Extend"
	}
	switch rlockFunc(info, call) {
	case "Do", "With":
		return true
	}
	return false
}

// reportUnit reports e if it is a constant of less than a millisecond, and names no unit.
func reportUnit(pass *analysis.Pass, defs definitions, e ast.Expr, what string) {
	lease := isLease(pass.TypesInfo.TypeOf(e))
	if inner := converted(pass.TypesInfo, e); inner != nil {
		e, lease = inner, false // the unit belongs inside of rlock.Lease(...)
	}
	value := e
	if v := objectOf(pass.TypesInfo, e); v != nil {
		if once := defs.once(v); once != nil {
			value = once
		}
	}
	d, ok := duration(pass.TypesInfo, value)
	if !ok || d <= 0 || d >= time.Millisecond || hasUnit(pass, value) {
		return
	}
	like := fmt.Sprintf("%d*time.Second", int64(d))
	if d >= 1000 {
		like = fmt.Sprintf("%d*time.Millisecond", int64(d))
	}
	if lease {
		like = "rlock.Lease(" + like + ")"
	}
	report(pass, e, fmt.Sprintf("the %s of %s is %v, because a number without a unit counts "+
		"nanoseconds; write the unit, as in %s", what, types.ExprString(e), d, like))
}

// hasUnit reports whether e mentions a constant of package time, or a constant that may: one that
// is not declared in this package.
func hasUnit(pass *analysis.Pass, e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return !found
		}
		c, ok := pass.TypesInfo.Uses[id].(*types.Const)
		if !ok {
			return !found
		}
		if c.Pkg() != pass.Pkg {
			found = true
			return false
		}
		if value := constantValue(pass, c); value != nil {
			found = hasUnit(pass, value)
		}
		return !found
	})
	return found
}

// constantValue returns the expression of a constant of the package, or nil.
func constantValue(pass *analysis.Pass, c *types.Const) ast.Expr {
	var value ast.Expr
	for _, file := range pass.Files {
		if !within(file, c.Pos()) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return value == nil
			}
			for i, name := range spec.Names {
				if pass.TypesInfo.Defs[name] == c && i < len(spec.Values) {
					value = spec.Values[i]
				}
			}
			return value == nil
		})
	}
	return value
}

// isDuration reports whether t is time.Duration.
func isDuration(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == "Duration" && isPackage(named.Obj().Pkg(), "time")
}

// isLease reports whether t is rlock.Lease.
func isLease(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == "Lease" && isRlock(named.Obj().Pkg())
}

// converted returns x if e is rlock.Lease(x), else nil.
func converted(info *types.Info, e ast.Expr) ast.Expr {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !info.Types[ast.Unparen(call.Fun)].IsType() || !isLease(info.TypeOf(call)) {
		return nil
	}
	return call.Args[0]
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
