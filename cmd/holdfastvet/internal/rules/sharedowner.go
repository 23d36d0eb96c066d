package rules

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// SharedOwner reports goroutines that lock with the owner of another goroutine.
var SharedOwner = &analysis.Analyzer{
	Name: "sharedowner",
	Doc: `report goroutines that lock with the owner of another goroutine

The context of a hold carries its owner, and an owner is never excluded by itself:
goroutines that lock with one context all hold the lock at the same time.

	for _, item := range items {
		go func() {
			hold, err := lock.Lock(ctx, lease) // ctx is outer.Context()
			...

A goroutine is what a go statement starts, or a literal that is an argument of a method
Go or TryGo, as of errgroup.Group and sync.WaitGroup; a go statement may also name a
function of the package. The context is hold.Context(), the one that rlock.Do or
rlock.With gives to its function, or made from those. The fix is rlock.Detached(ctx).

The same goes for a context that rlock.WithOwner or rlock.EnsureOwner made before, if
several goroutines acquire the same lock with it: one that a loop starts, or one that
starts after another. Each needs an owner of its own:

	ctx = rlock.WithOwner(ctx)
	for range 3 {
		go func() {
			hold, err := lock.Lock(ctx, lease) // all three get it
			...

A loop that waits for the goroutine, locks of which it is not known that they are the
same, and tests are left alone.`,
	Requires: []*analysis.Analyzer{acquired, inspect.Analyzer},
	Run:      runSharedOwner,
}

func runSharedOwner(pass *analysis.Pass) (any, error) {
	s := sharing{pass: pass, defs: pass.ResultOf[acquired].(*functions).defs}
	s.under = make(map[*types.Var]bool)
	s.bound = make(map[*types.Var]ast.Expr)
	s.started = make(map[owned][]goroutine)
	decls := declarations(pass)
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	in.Preorder([]ast.Node{(*ast.CallExpr)(nil)}, func(n ast.Node) {
		if literal := underLock(pass.TypesInfo, n.(*ast.CallExpr)); literal != nil {
			if v := firstParam(pass.TypesInfo, literal); v != nil {
				s.under[v] = true
			}
		}
	})
	starts := []ast.Node{(*ast.GoStmt)(nil), (*ast.CallExpr)(nil)}
	in.WithStack(starts, func(n ast.Node, push bool, stack []ast.Node) bool {
		if !push {
			return true
		}
		g := goroutine{start: n, stack: slices.Clone(stack[:len(stack)-1])}
		clear(s.bound)
		switch n := n.(type) {
		case *ast.GoStmt:
			if literal, ok := ast.Unparen(n.Call.Fun).(*ast.FuncLit); ok {
				s.bind(literal.Type, n.Call.Args)
				g.body = literal.Body
				s.check(g, nil)
			} else if fn := callee(pass.TypesInfo, n.Call); decls[fn] != nil {
				s.bind(decls[fn].Type, n.Call.Args)
				s.bindReceiver(decls[fn], n.Call)
				g.body = decls[fn].Body
				s.check(g, n.Call)
			}
		case *ast.CallExpr:
			if x, name := method(pass.TypesInfo, n); x != nil && (name == "Go" || name == "TryGo") {
				for _, arg := range n.Args {
					if literal, ok := ast.Unparen(arg).(*ast.FuncLit); ok {
						g.body = literal.Body
						s.check(g, nil)
					}
				}
			}
		}
		return true
	})
	return nil, nil
}

// sharing finds locks in goroutines.
type sharing struct {
	pass  *analysis.Pass
	defs  definitions
	under map[*types.Var]bool     // contexts that rlock.Do and rlock.With give to literals
	bound map[*types.Var]ast.Expr // parameters of functions that are started, by their arguments

	started map[owned][]goroutine // goroutines that lock with an owner that was made outside
}

// bind notes which arguments the parameters get.
func (s *sharing) bind(fn *ast.FuncType, args []ast.Expr) {
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

// bindReceiver notes which value a method that call calls is of.
func (s *sharing) bindReceiver(decl *ast.FuncDecl, call *ast.CallExpr) {
	x, _ := method(s.pass.TypesInfo, call)
	if x == nil || decl.Recv == nil || len(decl.Recv.List[0].Names) == 0 {
		return
	}
	if v, ok := s.pass.TypesInfo.Defs[decl.Recv.List[0].Names[0]].(*types.Var); ok {
		s.bound[v] = x
	}
}

// check reports the locks in the body of a goroutine. If started is the call that the goroutine
// runs, that is where they are reported.
func (s *sharing) check(g goroutine, started *ast.CallExpr) {
	ast.Inspect(g.body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		lock, verb := lockVerb(s.pass.TypesInfo, call)
		name := rlockFunc(s.pass.TypesInfo, call)
		switch {
		case lock != nil && verb != "Attach":
		case (name == "Do" || name == "With") && len(call.Args) == 5:
			lock = call.Args[1]
		default:
			return true
		}
		where, what := call.Args[0], types.ExprString(call.Fun)
		if started != nil {
			where, what = s.bound[objectOf(s.pass.TypesInfo, where)], types.ExprString(started.Fun)
			if where == nil {
				return true
			}
		}
		if s.isShared(call.Args[0], g.body, 0) {
			message := fmt.Sprintf("%s locks in a goroutine with the context of a hold; both have one "+
				"owner, so the lock does not exclude them from each other; write rlock.Detached(%s)",
				what, types.ExprString(where))
			report(s.pass, where, message, s.detach(where)...)
			return true
		}
		owner := s.owner(call.Args[0], g.body, 0)
		if owner == nil || inTest(s.pass, call.Pos()) || !s.several(g, owner, lock) {
			return true
		}
		report(s.pass, where, fmt.Sprintf("%s locks in several goroutines with the owner that line %d "+
			"made, so the lock does not exclude them from each other; call rlock.WithOwner in each "+
			"goroutine", what, line(s.pass, owner.Pos())))
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
