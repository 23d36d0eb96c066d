package rules

import (
	"fmt"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// SharedOwner reports goroutines that lock with the context of a hold of another goroutine.
var SharedOwner = &analysis.Analyzer{
	Name: "sharedowner",
	Doc: `report goroutines that lock with the context of a hold of another goroutine

The context of a hold carries its owner, and an owner is never excluded by itself:
goroutines that lock with one context all hold the lock at the same time.

	for _, item := range items {
		go func() {
			hold, err := lock.Lock(ctx, lease) // ctx is outer.Context()
			...

A goroutine is what a go statement starts, or a literal that is an argument of a method
Go or TryGo, as of errgroup.Group and sync.WaitGroup; a go statement may also name a
function of the package. The context is hold.Context(), the one that rlock.Do or
rlock.With gives to its function, or made from those. The fix is rlock.Detached(ctx).`,
	Requires: []*analysis.Analyzer{acquired, inspect.Analyzer},
	Run:      runSharedOwner,
}

func runSharedOwner(pass *analysis.Pass) (any, error) {
	s := sharing{pass: pass, defs: pass.ResultOf[acquired].(*functions).defs}
	s.under = make(map[*types.Var]bool)
	s.bound = make(map[*types.Var]ast.Expr)
	decls := declarations(pass)
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	in.Preorder([]ast.Node{(*ast.CallExpr)(nil)}, func(n ast.Node) {
		if literal := underLock(pass.TypesInfo, n.(*ast.CallExpr)); literal != nil {
			if v := firstParam(pass.TypesInfo, literal); v != nil {
				s.under[v] = true
			}
		}
	})
	in.Preorder([]ast.Node{(*ast.GoStmt)(nil), (*ast.CallExpr)(nil)}, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.GoStmt:
			if literal, ok := ast.Unparen(n.Call.Fun).(*ast.FuncLit); ok {
				s.bind(literal.Type, n.Call.Args)
				s.check(literal.Body, nil)
			} else if fn := callee(pass.TypesInfo, n.Call); decls[fn] != nil {
				s.bind(decls[fn].Type, n.Call.Args)
				s.check(decls[fn].Body, n.Call)
			}
		case *ast.CallExpr:
			if x, name := method(pass.TypesInfo, n); x != nil && (name == "Go" || name == "TryGo") {
				for _, arg := range n.Args {
					if literal, ok := ast.Unparen(arg).(*ast.FuncLit); ok {
						s.check(literal.Body, nil)
					}
				}
			}
		}
	})
	return nil, nil
}

// sharing finds locks in goroutines.
type sharing struct {
	pass  *analysis.Pass
	defs  definitions
	under map[*types.Var]bool     // contexts that rlock.Do and rlock.With give to literals
	bound map[*types.Var]ast.Expr // parameters of functions that are started, by their arguments
}

// bind notes which arguments the parameters get.
func (s *sharing) bind(fn *ast.FuncType, args []ast.Expr) {
	clear(s.bound)
	i := 0
	for _, field := range fn.Params.List {
		for _, name := range field.Names {
			if v, ok := s.pass.TypesInfo.Defs[name].(*types.Var); ok && i < len(args) {
				s.bound[v] = args[i]
			}
			i++
		}
		if len(field.Names) == 0 {
			i++
		}
	}
}

// check reports the locks in the body of a goroutine. If started is the call that the goroutine
// runs, that is where they are reported.
func (s *sharing) check(body *ast.BlockStmt, started *ast.CallExpr) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		lock, verb := lockVerb(s.pass.TypesInfo, call)
		name := rlockFunc(s.pass.TypesInfo, call)
		if (lock == nil || verb == "Attach") && name != "Do" && name != "With" ||
			!s.isShared(call.Args[0], body, 0) {
			return true
		}
		where := call.Args[0]
		what := types.ExprString(call.Fun)
		if started != nil {
			where = s.bound[objectOf(s.pass.TypesInfo, call.Args[0])]
			if where == nil {
				return true
			}
			what = types.ExprString(started.Fun)
		}
		message := fmt.Sprintf("%s locks in a goroutine with the context of a hold; both have one "+
			"owner, so the lock does not exclude them from each other; write rlock.Detached(%s)",
			what, types.ExprString(where))
		report(s.pass, where, message, s.detach(where)...)
		return true
	})
}

// isShared reports whether e is the context of a hold that the goroutine did not acquire itself.
func (s *sharing) isShared(e ast.Expr, body *ast.BlockStmt, depth int) bool {
	if depth > 8 {
		return false
	}
	info := s.pass.TypesInfo
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		if x, name := holdMethod(info, e); x != nil {
			v := objectOf(info, x)
			return name == "Context" && v != nil && !v.IsField() && !within(body, v.Pos())
		}
		switch rlockFunc(info, e) {
		case "Detached", "WithOwner":
			return false
		}
		for _, arg := range e.Args {
			if t := info.TypeOf(arg); t != nil && isContext(t) && s.isShared(arg, body, depth+1) {
				return true
			}
		}
	case *ast.Ident:
		v, _ := info.Uses[e].(*types.Var)
		if v == nil || !isContext(v.Type()) {
			return false
		}
		if s.under[v] {
			return !within(body, v.Pos())
		}
		if arg := s.bound[v]; arg != nil {
			return s.isShared(arg, body, depth+1)
		}
		if value := s.defs.before(v, e.Pos()); value != nil {
			return s.isShared(value, body, depth+1)
		}
	}
	return false
}

// detach returns the fix, if the file imports rlock.
func (s *sharing) detach(e ast.Expr) []analysis.SuggestedFix {
	for _, file := range s.pass.Files {
		if !within(file, e.Pos()) {
			continue
		}
		for _, spec := range file.Imports {
			pkg := s.pass.TypesInfo.PkgNameOf(spec)
			if pkg != nil && isRlock(pkg.Imported()) && lookup(s.pass, e, pkg.Name()) == pkg {
				return []analysis.SuggestedFix{fix("give the goroutine no owner", e,
					pkg.Name()+".Detached("+types.ExprString(e)+")")}
			}
		}
	}
	return nil
}
