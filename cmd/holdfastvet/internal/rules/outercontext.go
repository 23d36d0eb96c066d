package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// OuterContext reports calls under a lock that get a context from outside of it.
var OuterContext = &analysis.Analyzer{
	Name: "outercontext",
	Doc: `report calls under a lock that get a context from before the lock

Work with the context from before the lock, context.Background(), or context.TODO() does
not end when the lock is lost. Such a context also does not carry the owner, so a call
that acquires the same lock does not re-enter it, but waits for itself.

	hold, err := lock.Lock(ctx, rlock.Watchdog)
	...
	defer hold.UnlockTo(&err)
	return ship(ctx) // ship(hold.Context())

The rule checks calls between the acquisition and the release, and the function that
rlock.Do or rlock.With calls. It reports the variable with which the lock was acquired,
and contexts that package context derives from it there. It does not report methods of
holds, Unlock and the other methods of locks that acquire nothing, packages for logs,
traces, and metrics, functions that only read a value from a context, other function
literals, go and defer statements, code after an error or after the end of a context or
of the hold, contexts with an owner from rlock.WithOwner or rlock.EnsureOwner, and tests.
The fix is hold.Context().`,
	Requires: []*analysis.Analyzer{acquired, inspect.Analyzer},
	Run:      runOuterContext,
}

func runOuterContext(pass *analysis.Pass) (any, error) {
	reported := make(map[token.Pos]bool) // where a statement is in the sections of two holds
	for _, f := range pass.ResultOf[acquired].(*functions).all {
		for _, a := range f.acquisitions {
			if f.test || a.node == nil || a.hold == nil || a.lock == nil {
				continue
			}
			o := outer{pass: pass, given: a.ctx, owned: f.makesOwner(pass.TypesInfo, a.ctx)}
			o.inner, o.at = a.hold, a.hold.Name()+".Context()"
			o.reported, o.derived = reported, make(map[*types.Var]derivation)
			o.body = f.body
			f.section(pass, a, func(n ast.Node, end token.Pos, p *path) bool {
				if o.awaitsEnd(n) {
					return false
				}
				if _, ok := n.(*ast.GoStmt); !ok {
					o.check(n, end, p.mark != nil)
				}
				o.derive(n, p.mark != nil)
				if o.replaces(n) {
					p.mark = n
				}
				return true
			})
		}
	}
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	in.Preorder([]ast.Node{(*ast.CallExpr)(nil)}, func(n ast.Node) {
		call := n.(*ast.CallExpr)
		literal := underLock(pass.TypesInfo, call)
		if literal == nil || inTest(pass, call.Pos()) {
			return
		}
		o := outer{pass: pass, given: call.Args[0], at: "the context that the function is given"}
		if param := firstParam(pass.TypesInfo, literal); param != nil {
			o.inner, o.at = param, param.Name()
		}
		o.reported, o.derived = reported, make(map[*types.Var]derivation)
		o.body = literal.Body
		for _, stmt := range literal.Body.List {
			o.check(stmt, stmt.End(), false)
			o.derive(stmt, false)
		}
	})
	return nil, nil
}

// makesOwner reports whether the function made ctx with an owner.
func (f *function) makesOwner(info *types.Info, ctx ast.Expr) bool {
	makes := func(e ast.Expr) bool {
		call, ok := ast.Unparen(e).(*ast.CallExpr)
		if !ok {
			return false
		}
		name := rlockFunc(info, call)
		return name == "WithOwner" || name == "EnsureOwner"
	}
	if makes(ctx) {
		return true
	}
	v := objectOf(info, ctx)
	if v == nil {
		return false
	}
	for _, d := range f.defs[v] {
		if d.value != nil && makes(d.value) {
			return true
		}
	}
	return false
}

// outer finds the calls in one section.
type outer struct {
	pass     *analysis.Pass
	body     *ast.BlockStmt
	given    ast.Expr   // the context that the lock was acquired with
	owned    bool       // it has an owner that the function made
	inner    *types.Var // the hold, or the context under the lock; nil if that has no name
	at       string     // what to write instead
	reported map[token.Pos]bool
	derived  map[*types.Var]derivation // variables with a context made from one from outside
}

// derivation is a call that makes a context from another one, as context.WithTimeout does.
type derivation struct {
	call *ast.CallExpr
	from ast.Expr
}

// derive notes whether n makes a context from one from outside. That is no mistake if it is for
// the release, so it is reported where something else gets the context.
func (o *outer) derive(n ast.Node, replaced bool) {
	assign, ok := n.(*ast.AssignStmt)
	if !ok {
		return
	}
	info := o.pass.TypesInfo
	for _, lhs := range assign.Lhs {
		if v := objectOf(info, lhs); v != nil {
			delete(o.derived, v)
		}
	}
	call, ok := ast.Unparen(assign.Rhs[0]).(*ast.CallExpr)
	v := objectOf(info, assign.Lhs[0])
	if !ok || v == nil || !isContext(v.Type()) || len(call.Args) == 0 {
		return
	}
	fn := callee(info, call)
	if fn == nil || !isPackage(fn.Pkg(), "context") || fn.Name() == "WithoutCancel" {
		return
	}
	if o.isOuter(call.Args[0], replaced) {
		o.derived[v] = derivation{call, call.Args[0]}
	}
}

// replaces reports whether n assigns to the variable that the context comes from.
func (o *outer) replaces(n ast.Node) bool {
	assign, ok := n.(*ast.AssignStmt)
	if !ok {
		return false
	}
	info, v := o.pass.TypesInfo, o.base()
	return v != nil && slices.ContainsFunc(assign.Lhs, func(e ast.Expr) bool {
		return objectOf(info, e) == v
	})
}

// base returns the variable that the context is or comes from: r, if it is r.Context().
func (o *outer) base() *types.Var {
	e := ast.Unparen(o.given)
	for {
		switch x := e.(type) {
		case *ast.CallExpr:
			e = ast.Unparen(x.Fun)
		case *ast.SelectorExpr:
			e = ast.Unparen(x.X)
		default:
			return objectOf(o.pass.TypesInfo, e)
		}
	}
}

// check reports the calls in n that end before end. replaced says that the variable with the
// context has another one by now.
func (o *outer) check(n ast.Node, end token.Pos, replaced bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.GoStmt, *ast.DeferStmt:
			return false
		case *ast.CallExpr:
			if n.End() > end && n.Pos() <= end && n.Pos() != end {
				return true // a call of which the release is an argument
			}
			if n.Pos() >= end {
				return false
			}
			if o.exempt(n) {
				return true
			}
			for _, arg := range n.Args {
				if o.isOuter(arg, replaced) {
					o.report(n, arg)
				} else if d, ok := o.derived[objectOf(o.pass.TypesInfo, arg)]; ok {
					o.report(d.call, d.from)
				}
			}
		}
		return true
	})
}

// report reports that call gets the context arg.
func (o *outer) report(call *ast.CallExpr, arg ast.Expr) {
	if o.reported[arg.Pos()] || o.afterError(arg.Pos()) {
		return
	}
	o.reported[arg.Pos()] = true
	what := "does not end when the lock is lost"
	if lock, _ := lockVerb(o.pass.TypesInfo, call); lock != nil {
		what = "does not carry the owner, so the same lock would wait for itself"
	}
	var fixes []analysis.SuggestedFix
	if o.inner != nil && lookup(o.pass, arg, o.inner.Name()) == o.inner {
		fixes = append(fixes, fix("use "+o.at, arg, o.at))
	}
	report(o.pass, arg, fmt.Sprintf("%s gets %s under the lock, but that context %s; write %s",
		types.ExprString(call.Fun), types.ExprString(arg), what, o.at), fixes...)
}

// awaitsEnd reports whether n waits for a context to end. The hold's may have ended by then, too.
func (o *outer) awaitsEnd(n ast.Node) bool {
	awaits := false
	inspectShallow(n, func(n ast.Node) {
		receive, ok := n.(*ast.UnaryExpr)
		if !ok || receive.Op != token.ARROW {
			return
		}
		if call, ok := ast.Unparen(receive.X).(*ast.CallExpr); ok {
			x, name := method(o.pass.TypesInfo, call)
			awaits = awaits || name == "Done" && isContext(o.pass.TypesInfo.TypeOf(x))
		}
	})
	return awaits
}

// afterError reports whether what is at pos is done only after an error, which may be that the
// lock was lost: then the hold's context is of no use.
func (o *outer) afterError(pos token.Pos) bool {
	after := false
	ast.Inspect(o.body, func(n ast.Node) bool {
		if n == nil || !within(n, pos) {
			return false
		}
		switch n := n.(type) {
		case *ast.IfStmt:
			after = after || within(n.Body, pos) && o.asksForError(n.Cond)
		case *ast.CaseClause:
			after = after || slices.ContainsFunc(n.List, o.asksForError) && pos > n.Colon
		}
		return true
	})
	return after
}

// asksForError reports whether a condition is about an error, and not that there is none.
func (o *outer) asksForError(cond ast.Expr) bool {
	asks := false
	ast.Inspect(cond, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.EQL {
			return false
		}
		t := o.pass.TypesInfo.TypeOf(e)
		asks = asks || t != nil && isError(t)
		return !asks
	})
	return asks
}

// isOuter reports whether e is a context from outside of the section.
func (o *outer) isOuter(e ast.Expr, replaced bool) bool {
	info := o.pass.TypesInfo
	e = ast.Unparen(e)
	if call, ok := e.(*ast.CallExpr); ok {
		if fn := callee(info, call); fn != nil && isPackage(fn.Pkg(), "context") &&
			(fn.Name() == "Background" || fn.Name() == "TODO") {
			return true
		}
	}
	if replaced || o.owned || !isContext(info.TypeOf(e)) {
		return false
	}
	if v := objectOf(info, o.given); v != nil && !v.IsField() {
		return objectOf(info, e) == v
	}
	return isPlain(info, e) && types.ExprString(e) == types.ExprString(ast.Unparen(o.given))
}

// isPlain reports whether e is a field, or a call without arguments as in r.Context(), but not of
// a hold: a section inside another one may use the outer hold's context.
func isPlain(info *types.Info, e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return true
	case *ast.CallExpr:
		x, _ := method(info, e)
		return x != nil && len(e.Args) == 0 && !isHold(info.TypeOf(x))
	}
	return false
}

// observes matches the paths of packages for logs, traces and metrics.
var observes = regexp.MustCompile(
	`(^|/)(k?log|s?log|logger|logging|logr|logrus|zap|zerolog|trace|tracing|otel|metrics?)(/|$)`)

// exempt reports whether a call may get any context.
func (o *outer) exempt(call *ast.CallExpr) bool {
	info := o.pass.TypesInfo
	if info.Types[ast.Unparen(call.Fun)].IsType() {
		return true
	}
	if lock, _ := lockVerb(info, call); lock != nil {
		return false
	}
	switch rlockFunc(info, call) {
	case "Do", "With":
		return false
	}
	if x, _ := method(info, call); x != nil && (isHold(info.TypeOf(x)) || isLock(info.TypeOf(x))) {
		return true
	}
	fn := callee(info, call)
	if fn != nil && fn.Pkg() != nil &&
		(isHoldfast(fn.Pkg()) || isPackage(fn.Pkg(), "context", "fmt") ||
			observes.MatchString(fn.Pkg().Path())) {
		return true
	}
	return readsValue(info, call)
}

// readsValue reports whether a call has a context as its only argument, and results but no error
// and no context: it most probably reads a value from the context, and waits for nothing.
func readsValue(info *types.Info, call *ast.CallExpr) bool {
	sig, ok := info.TypeOf(call.Fun).(*types.Signature)
	if !ok || len(call.Args) != 1 || sig.Results().Len() == 0 {
		return false
	}
	for v := range sig.Results().Variables() {
		if isError(v.Type()) || isContext(v.Type()) {
			return false
		}
	}
	return true
}
