package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

// acquisition is a call that acquires a lock, and where its results go.
type acquisition struct {
	call  *ast.CallExpr
	verb  string   // Lock, TryLock or Attach
	lock  ast.Expr // the lock; for Attach the client; nil if a wrapper acquires it
	ctx   ast.Expr // nil if a wrapper acquires the lock, like lease
	lease ast.Expr

	node    ast.Node   // the statement with the call, as it is in the control flow
	hold    *types.Var // the variable that gets the hold; nil if it is dropped or goes elsewhere
	err     *types.Var // the variable that gets the error; nil if there is none
	dropped bool       // the hold goes nowhere
}

// String returns the call as in "lock.TryLock".
func (a *acquisition) String() string { return types.ExprString(a.call.Fun) }

// function is a function that acquires a lock, declared or a literal.
type function struct {
	node         ast.Node // *ast.FuncDecl or *ast.FuncLit
	sig          *types.Signature
	body         *ast.BlockStmt
	cfg          *cfg.CFG
	test         bool // in a file _test.go
	acquisitions []*acquisition

	uses    map[*types.Var][]use // of holds, in literals too, in the order of the text
	unlocks []*ast.CallExpr      // lock.Unlock(ctx), in literals too
	defs    definitions          // of the whole package
	release map[*types.Func]bool // releasers of the whole package
	comms   map[ast.Node]bool    // communications of select statements
	tags    map[*ast.CaseClause]ast.Stmt
	guards  map[*acquisition]map[string]bool // conditions that are known where a is, by their text
}

// functions is the result of acquired: the functions of a package that acquire locks, and all
// calls of lock.Unlock(ctx) in it, and what is assigned to its variables.
type functions struct {
	all     []*function
	unlocks []*ast.CallExpr
	// releasers are the functions that call lock.Unlock(ctx).
	releasers map[*types.Func]bool
	decls     map[*types.Func]*ast.FuncDecl
	defs      definitions
}

// acquired finds the acquisitions in a package, for the rules.
var acquired = &analysis.Analyzer{
	Name:       "holdfastacquired",
	Doc:        "find where locks are acquired, for the other analyzers of holdfastvet",
	Run:        findAcquisitions,
	Requires:   []*analysis.Analyzer{inspect.Analyzer, ctrlflow.Analyzer},
	ResultType: reflect.TypeFor[*functions](),
}

func findAcquisitions(pass *analysis.Pass) (any, error) {
	found := &functions{defs: findDefinitions(pass), decls: declarations(pass),
		releasers: make(map[*types.Func]bool)}
	w := &wrappers{pass: pass, defs: found.defs, decls: found.decls}
	w.known = make(map[*types.Func]bool)
	flow := pass.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs)
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	kinds := []ast.Node{(*ast.FuncDecl)(nil), (*ast.FuncLit)(nil), (*ast.CallExpr)(nil)}
	var decl *ast.FuncDecl // the latest
	in.Preorder(kinds, func(n ast.Node) {
		f := &function{node: n, defs: found.defs, release: found.releasers}
		switch n := n.(type) {
		case *ast.CallExpr:
			if lockUnlock(pass.TypesInfo, n) != nil {
				found.unlocks = append(found.unlocks, n)
				if decl != nil && within(decl, n.Pos()) {
					if fn, ok := pass.TypesInfo.Defs[decl.Name].(*types.Func); ok {
						found.releasers[fn] = true
					}
				}
			}
			return
		case *ast.FuncDecl:
			decl = n
			f.body, f.cfg = n.Body, flow.FuncDecl(n)
		case *ast.FuncLit:
			f.body, f.cfg = n.Body, flow.FuncLit(n)
		}
		if f.body == nil || f.cfg == nil {
			return
		}
		f.sig = signature(pass.TypesInfo, n)
		f.findCalls(w)
		if len(f.acquisitions) > 0 && f.sig != nil {
			f.test = strings.HasSuffix(pass.Fset.Position(n.Pos()).Filename, "_test.go")
			f.findUses(pass.TypesInfo)
			f.findNodes()
			found.all = append(found.all, f)
		}
	})
	return found, nil
}

// signature returns the signature of a declared or literal function.
func signature(info *types.Info, n ast.Node) *types.Signature {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if fn, ok := info.Defs[n.Name].(*types.Func); ok {
			return fn.Signature()
		}
	case *ast.FuncLit:
		sig, _ := info.TypeOf(n).(*types.Signature)
		return sig
	}
	return nil
}

// findCalls finds the acquisitions in the function itself, not in the literals inside.
func (f *function) findCalls(w *wrappers) {
	info := w.pass.TypesInfo
	ast.PreorderStack(f.body, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			a := &acquisition{call: n}
			a.lock, a.verb = lockVerb(info, n)
			if a.lock != nil {
				a.ctx, a.lease = n.Args[0], n.Args[len(n.Args)-1]
			} else if !w.handsOver(n) {
				return true
			}
			a.bind(info, stack)
			f.acquisitions = append(f.acquisitions, a)
		}
		return true
	})
}

// bind finds out where the results of the call go. stack is what encloses it.
func (a *acquisition) bind(info *types.Info, stack []ast.Node) {
	call := a.call
	hold, err := ast.Expr(nil), ast.Expr(nil)
	for i := len(stack) - 1; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.ParenExpr:
			continue
		case *ast.CallExpr: // must(lock.Lock(ctx, lease))
			if len(n.Args) == 1 && isHold(info.TypeOf(n)) && call == a.call {
				call = n
				continue
			}
		case *ast.AssignStmt:
			if len(n.Rhs) == 1 {
				a.node, hold = n, n.Lhs[0]
				if len(n.Lhs) == 2 {
					err = n.Lhs[1]
				}
			}
		case *ast.ValueSpec:
			if len(n.Values) == 1 {
				a.node, hold = n, n.Names[0]
				if len(n.Names) == 2 {
					err = n.Names[1]
				}
			}
		case *ast.ExprStmt, *ast.GoStmt, *ast.DeferStmt:
			a.node, a.dropped = n, true
		}
		break
	}
	if id, ok := err.(*ast.Ident); ok {
		a.err, _ = info.ObjectOf(id).(*types.Var)
	}
	if id, ok := hold.(*ast.Ident); ok {
		a.hold, _ = info.ObjectOf(id).(*types.Var)
		a.dropped = id.Name == "_"
	}
	if a.dropped {
		a.hold = nil
	}
}

// within reports whether pos is in n.
func within(n ast.Node, pos token.Pos) bool { return n.Pos() <= pos && pos < n.End() }

// findNodes collects what the walk along the control flow needs to know of the syntax.
func (f *function) findNodes() {
	f.comms = make(map[ast.Node]bool)
	f.tags = make(map[*ast.CaseClause]ast.Stmt)
	f.guards = make(map[*acquisition]map[string]bool)
	for _, a := range f.acquisitions {
		f.guards[a] = make(map[string]bool)
	}
	ast.Inspect(f.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectStmt:
			for _, clause := range n.Body.List {
				if comm := clause.(*ast.CommClause).Comm; comm != nil {
					f.comms[comm] = true
				}
			}
		case *ast.SwitchStmt:
			for _, clause := range n.Body.List {
				f.tags[clause.(*ast.CaseClause)] = n
			}
		case *ast.TypeSwitchStmt:
			for _, clause := range n.Body.List {
				f.tags[clause.(*ast.CaseClause)] = n
			}
		case *ast.IfStmt:
			for _, a := range f.acquisitions {
				if within(n.Body, a.call.Pos()) {
					know(f.guards[a], n.Cond, true)
				} else if n.Else != nil && within(n.Else, a.call.Pos()) {
					know(f.guards[a], n.Cond, false)
				}
			}
		}
		return true
	})
}

// know notes that the condition has the value, and what follows for its parts.
func know(known map[string]bool, cond ast.Expr, value bool) {
	switch e := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			know(known, e.X, !value)
		}
	case *ast.BinaryExpr:
		switch {
		case e.Op == token.LAND && value, e.Op == token.LOR && !value:
			know(known, e.X, value)
			know(known, e.Y, value)
		case e.Op == token.EQL, e.Op == token.NEQ:
			known[types.ExprString(e)] = value
		}
	case *ast.Ident, *ast.SelectorExpr:
		known[types.ExprString(e)] = value
	}
}
