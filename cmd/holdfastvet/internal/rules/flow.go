package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/cfg"
)

// path is what is known at a point of a path that begins with a successful acquisition.
type path struct {
	stale bool     // the variable of the error has another value by now
	mark  ast.Node // for the rule that walks
}

// walk follows all paths from an acquisition that succeeded: where the code looks at the error,
// they go on as if it is nil. A path ends where visit returns false, at calls that don't return,
// where the acquisition is repeated, and without a word where it depends on the error in a way
// that walk does not understand: a rule must not guess. exit is called at each return.
type walk struct {
	info  *types.Info
	f     *function
	a     *acquisition
	visit func(n ast.Node, p *path) bool
	exit  func(ret *ast.ReturnStmt, p path)

	seen map[step]bool
}

// step is a block of the control flow, entered with a path.
type step struct {
	block *cfg.Block
	path  path
}

// run walks.
func (w *walk) run() {
	w.seen = make(map[step]bool)
	for _, b := range w.f.cfg.Blocks {
		for i, n := range b.Nodes {
			if n == w.a.node {
				w.nodes(b, b.Nodes[i+1:], path{})
				return
			}
		}
	}
}

// enter goes on at the beginning of a block.
func (w *walk) enter(b *cfg.Block, p path) {
	if w.seen[step{b, p}] {
		return
	}
	w.seen[step{b, p}] = true
	if clause, ok := b.Stmt.(*ast.CommClause); ok && b.Kind == cfg.KindSelectCaseBody {
		if !w.node(clause.Comm, &p) {
			return
		}
	}
	w.nodes(b, b.Nodes, p)
}

// nodes goes on with the given nodes of a block, and then with the blocks after it.
func (w *walk) nodes(b *cfg.Block, nodes []ast.Node, p path) {
	for _, n := range nodes {
		// The control flow has the communications before the select statement, all of them.
		if w.f.comms[n] {
			continue
		}
		if !w.node(n, &p) {
			return
		}
		if ret, ok := n.(*ast.ReturnStmt); ok {
			if w.exit != nil {
				w.exit(ret, p)
			}
			return
		}
	}
	if len(b.Succs) != 2 {
		for _, next := range b.Succs {
			w.enter(next, p)
		}
		return
	}
	switch w.branch(b, p) {
	case yes:
		w.enter(b.Succs[0], p)
	case no:
		w.enter(b.Succs[1], p)
	case open:
		w.enter(b.Succs[0], p)
		w.enter(b.Succs[1], p)
	case unknown:
	}
}

// node visits a node, and reports whether the path goes on after it.
func (w *walk) node(n ast.Node, p *path) bool {
	if w.ends(n, *p) || !w.visit(n, p) || n == w.a.node {
		return false
	}
	if assign, ok := n.(*ast.AssignStmt); ok && w.a.err != nil {
		to := slices.ContainsFunc(assign.Lhs, func(e ast.Expr) bool {
			return objectOf(w.info, e) == w.a.err
		})
		from := slices.ContainsFunc(assign.Rhs, func(e ast.Expr) bool { return w.asksError(e) })
		p.stale = p.stale || to && !from
	}
	return true
}

// ends reports whether n ends the path: because the program or the test does not go on after it,
// because it asserts that the lock was not acquired, or because the hold has ended.
func (w *walk) ends(n ast.Node, p path) bool {
	ended := false
	inspectShallow(n, func(n ast.Node) {
		if receive, ok := n.(*ast.UnaryExpr); ok && receive.Op == token.ARROW && w.isDone(receive.X) {
			ended = true
		}
	})
	stmt, ok := n.(*ast.ExprStmt)
	if !ok || ended {
		return ended
	}
	call, ok := ast.Unparen(stmt.X).(*ast.CallExpr)
	if !ok {
		return false
	}
	name := calledName(call)
	for _, last := range []string{"Fatal", "Exit", "Panic", "FailNow", "Skip", "Goexit"} {
		if strings.HasPrefix(name, last) {
			return true
		}
	}
	return w.f.test && (w.asserts(call, p) || w.assertsEnd(call))
}

// asserts reports whether a call in a test decides about the error or the hold in a way that is
// not plainly that the lock was acquired.
func (w *walk) asserts(call *ast.CallExpr, p path) bool {
	name := calledName(call)
	fn := callee(w.info, call)
	if name == "panic" || strings.HasPrefix(name, "NoError") ||
		fn != nil && isPackage(fn.Pkg(), "testing", "fmt", "log") {
		return false
	}
	aboutHold := fn != nil && isTestify(fn) && !strings.HasPrefix(name, "Not") &&
		slices.ContainsFunc(call.Args, func(e ast.Expr) bool {
			return w.a.hold != nil && objectOf(w.info, e) == w.a.hold
		})
	return aboutHold || !p.stale && w.asksError(call)
}

// assertsEnd reports whether a call in a test asserts, or waits until, the hold has ended.
func (w *walk) assertsEnd(call *ast.CallExpr) bool {
	name := calledName(call)
	return !strings.HasPrefix(name, "NoError") && name != "Nil" && name != "True" &&
		slices.ContainsFunc(call.Args, func(e ast.Expr) bool {
			if w.isDone(e) || w.isHoldError(e) {
				return true
			}
			asked, ok := ast.Unparen(e).(*ast.CallExpr)
			if !ok {
				return false
			}
			x, method := holdMethod(w.info, asked)
			return method == "Valid" && w.isHold(x)
		})
}

// calledName returns the name of the function or method that call calls.
func calledName(call *ast.CallExpr) string {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.SelectorExpr:
		return fun.Sel.Name
	case *ast.Ident:
		return fun.Name
	}
	return ""
}

// isDone reports whether e is hold.Done() or hold.Context().Done().
func (w *walk) isDone(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	x, name := method(w.info, call)
	return name == "Done" && (w.isHold(x) || w.isHoldContext(x))
}

// isHold reports whether e is the hold.
func (w *walk) isHold(e ast.Expr) bool {
	return w.a.hold != nil && e != nil && objectOf(w.info, e) == w.a.hold
}

// isHoldContext reports whether e is the hold's context, or a variable that has it.
func (w *walk) isHoldContext(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		x, name := holdMethod(w.info, e)
		return name == "Context" && w.isHold(x)
	case *ast.Ident:
		if v := objectOf(w.info, e); v != nil {
			if value := w.f.definedOnce(v); value != nil && ast.Expr(e) != value {
				_, call := ast.Unparen(value).(*ast.CallExpr)
				return call && w.isHoldContext(value)
			}
		}
	}
	return false
}

// answer is what a condition is, if the lock was acquired and is still held.
type answer int

const (
	open    answer = iota // it has nothing to do with the lock
	yes                   // true
	no                    // false
	unknown               // it has to do with the lock, but it is not known how
)

// not returns the opposite.
func (a answer) not() answer {
	switch a {
	case yes:
		return no
	case no:
		return yes
	}
	return a
}

// branch says by which of two ways the path leaves a block.
func (w *walk) branch(b *cfg.Block, p path) answer {
	if len(b.Nodes) == 0 {
		return w.typeCase(b, p)
	}
	cond, ok := b.Nodes[len(b.Nodes)-1].(ast.Expr)
	switch b.Succs[0].Kind {
	case cfg.KindIfThen, cfg.KindForBody:
		if ok {
			return w.judge(cond, p)
		}
	case cfg.KindSwitchCaseBody:
		clause, isCase := b.Succs[0].Stmt.(*ast.CaseClause)
		if !isCase {
			return open
		}
		tag, isSwitch := w.f.tags[clause].(*ast.SwitchStmt)
		if !isSwitch {
			return w.typeCase(b, p)
		}
		if !ok {
			return open
		}
		if tag.Tag == nil {
			return w.judge(cond, p)
		}
		return w.equal(tag.Tag, cond, p)
	}
	return open
}

// typeCase says whether a path enters a case of a type switch.
func (w *walk) typeCase(b *cfg.Block, p path) answer {
	clause, ok := b.Succs[0].Stmt.(*ast.CaseClause)
	if !ok {
		return open
	}
	if s, ok := w.f.tags[clause].(*ast.TypeSwitchStmt); ok && !p.stale && w.asksError(s.Assign) {
		if slices.ContainsFunc(clause.List, func(e ast.Expr) bool { return isNil(w.info, e) }) {
			return yes
		}
		return no
	}
	return open
}

// judge says what a condition is.
func (w *walk) judge(cond ast.Expr, p path) answer {
	if value, ok := w.f.guards[w.a][types.ExprString(ast.Unparen(cond))]; ok && !w.asks(cond) {
		if value {
			return yes
		}
		return no
	}
	switch e := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return w.judge(e.X, p).not()
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND:
			return both(w.judge(e.X, p), w.judge(e.Y, p))
		case token.LOR:
			return both(w.judge(e.X, p).not(), w.judge(e.Y, p).not()).not()
		case token.EQL:
			return w.equal(e.X, e.Y, p)
		case token.NEQ:
			return w.equal(e.X, e.Y, p).not()
		}
	case *ast.CallExpr:
		if fn := callee(w.info, e); fn != nil && isPackage(fn.Pkg(), "errors") && len(e.Args) > 0 &&
			w.isError(e.Args[0], p) {
			return no // errors.Is and errors.As
		}
		if x, name := holdMethod(w.info, e); name == "Valid" && w.isHold(x) {
			return yes
		}
	case *ast.Ident:
		if v := objectOf(w.info, e); v != nil {
			if value := w.f.definedOnce(v); value != nil && value.Pos() > w.a.call.Pos() {
				return w.judge(value, path{})
			}
			if slices.ContainsFunc(w.f.defs[v], func(d definition) bool {
				return d.value != nil && w.asks(d.value)
			}) {
				return unknown
			}
		}
	}
	if w.asksHold(cond) || !p.stale && w.asksError(cond) {
		return unknown
	}
	return open
}

// both says what x && y is.
func both(x, y answer) answer {
	switch {
	case x == no || y == no:
		return no
	case x == yes && y == yes:
		return yes
	case x == unknown || y == unknown:
		return unknown
	}
	return open
}

// equal says what x == y is.
func (w *walk) equal(x, y ast.Expr, p path) answer {
	for range 2 {
		switch {
		case w.isError(x, p), w.isHoldError(x):
			if isNil(w.info, y) {
				return yes
			}
			return no // a particular error
		case w.isHold(x) && isNil(w.info, y):
			return no
		case isBool(w.info, y, "true"):
			return w.judge(x, p)
		case isBool(w.info, y, "false"):
			return w.judge(x, p).not()
		}
		x, y = y, x
	}
	if w.asksHold(x) || w.asksHold(y) || !p.stale && (w.asksError(x) || w.asksError(y)) {
		return unknown
	}
	return open
}

// isBool reports whether e is the literal.
func isBool(info *types.Info, e ast.Expr, literal string) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && info.Uses[id] == types.Universe.Lookup(literal)
}

// isError reports whether e is the error of the acquisition, or a variable that has the same.
func (w *walk) isError(e ast.Expr, p path) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok || w.a.err == nil {
		return false
	}
	v := objectOf(w.info, id)
	if v == w.a.err {
		return !p.stale
	}
	if v == nil {
		return false
	}
	value := w.f.definedOnce(v)
	return value != nil && value.Pos() > w.a.call.Pos() && objectOf(w.info, value) == w.a.err
}

// isHoldError reports whether e is hold.Err(), or the error of the hold's context.
func (w *walk) isHoldError(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	if x, name := method(w.info, call); name == "Err" {
		return w.isHold(x) || w.isHoldContext(x)
	}
	fn := callee(w.info, call)
	return fn != nil && fn.Name() == "Cause" && isPackage(fn.Pkg(), "context") &&
		w.isHoldContext(call.Args[0])
}

// asks reports whether n mentions the hold or the error, or a variable that comes from them.
func (w *walk) asks(n ast.Node) bool { return w.asksHold(n) || w.asksError(n) }

// asksHold reports whether n mentions the hold.
func (w *walk) asksHold(n ast.Node) bool { return w.a.hold != nil && w.mentions(n, w.a.hold) }

// asksError reports whether n mentions the error, or a variable that comes from it.
func (w *walk) asksError(n ast.Node) bool {
	if w.a.err == nil {
		return false
	}
	if w.mentions(n, w.a.err) {
		return true
	}
	from := false
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			v := objectOf(w.info, id)
			from = from || v != nil && v != w.a.err &&
				slices.ContainsFunc(w.f.defs[v], func(d definition) bool {
					return d.value != nil && d.pos > w.a.call.Pos() && w.mentions(d.value, w.a.err)
				})
		}
		return !from
	})
	return from
}

// mentions reports whether n mentions v.
func (w *walk) mentions(n ast.Node, v *types.Var) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && w.info.ObjectOf(id) == v {
			found = true
		}
		return !found
	})
	return found
}

// inspectShallow visits n and what is in it, but not what is in literals of functions.
func inspectShallow(n ast.Node, visit func(n ast.Node)) {
	ast.Inspect(n, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		visit(n)
		return true
	})
}
