package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// goroutine is a place where goroutines start that lock.
type goroutine struct {
	start ast.Node   // the go statement, or the call of a method Go
	stack []ast.Node // what encloses it
	body  *ast.BlockStmt
}

// owned is a lock by the owner that a call of WithOwner or EnsureOwner made.
type owned struct {
	owner *ast.CallExpr
	lock  string // see key
}

// several reports whether several goroutines lock e with one owner: because g starts them in a
// loop, or because another one was started before it and has not been waited for.
func (s *sharing) several(g goroutine, owner *ast.CallExpr, e ast.Expr) bool {
	for i, n := range g.stack {
		var loop *ast.BlockStmt
		switch n := n.(type) {
		case *ast.ForStmt:
			loop = n.Body
		case *ast.RangeStmt:
			loop = n.Body
		}
		if loop != nil && !within(n, owner.Pos()) && !waits(loop, loop.Pos(), loop.End()) &&
			!leavesLoop(g.stack[i+1:], g.start) && s.key(e, 0, n, g.body) != "" {
			return true
		}
	}
	key := owned{owner, s.key(e, 0, g.body)}
	if key.lock == "" {
		return false
	}
	before := s.started[key]
	s.started[key] = append(before, g)
	return slices.ContainsFunc(before, func(other goroutine) bool {
		block := innermostBlock(other.stack)
		return other.start != g.start && block != nil && within(block, g.start.Pos()) &&
			enclosingFunction(other.stack) == enclosingFunction(g.stack) &&
			!waits(block, other.start.End(), g.start.Pos())
	})
}

// leavesLoop reports whether a block of the stack ends with a return or break after the start of
// the goroutine, so that the loop starts only one.
func leavesLoop(stack []ast.Node, start ast.Node) bool {
	return slices.ContainsFunc(stack, func(n ast.Node) bool {
		block, ok := n.(*ast.BlockStmt)
		if !ok || !within(block, start.Pos()) || len(block.List) == 0 {
			return false
		}
		switch last := block.List[len(block.List)-1].(type) {
		case *ast.ReturnStmt:
			return true
		case *ast.BranchStmt:
			return last.Tok == token.BREAK || last.Tok == token.GOTO
		}
		return false
	})
}

// innermostBlock returns the last block of a stack, or nil.
func innermostBlock(stack []ast.Node) *ast.BlockStmt {
	for _, n := range slices.Backward(stack) {
		if block, ok := n.(*ast.BlockStmt); ok {
			return block
		}
	}
	return nil
}

// waits reports whether something between the two positions in n may wait for a goroutine.
func waits(n ast.Node, from, to token.Pos) bool {
	found := false
	inspectShallow(n, func(n ast.Node) {
		if n.Pos() < from || n.Pos() >= to {
			return
		}
		switch n := n.(type) {
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		case *ast.SelectStmt:
			found = true
		case *ast.CallExpr:
			found = found || strings.Contains(calledName(n), "Wait")
		}
	})
	return found
}

// owner returns the call of WithOwner or EnsureOwner that made the owner of e, outside of the body
// of the goroutine, or nil.
func (s *sharing) owner(e ast.Expr, body *ast.BlockStmt, depth int) *ast.CallExpr {
	if depth > 8 {
		return nil
	}
	info := s.pass.TypesInfo
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		switch rlockFunc(info, e) {
		case "WithOwner", "EnsureOwner":
			if within(body, e.Pos()) {
				return nil
			}
			return e
		case "Detached":
			return nil
		}
		for _, arg := range e.Args {
			if t := info.TypeOf(arg); t != nil && isContext(t) {
				return s.owner(arg, body, depth+1)
			}
		}
	case *ast.Ident:
		v := objectOf(info, e)
		if v == nil || !isContext(v.Type()) || s.under[v] {
			return nil
		}
		if arg := s.bound[v]; arg != nil {
			return s.owner(arg, body, depth+1)
		}
		if value := s.defs.before(v, e.Pos()); value != nil {
			return s.owner(value, body, depth+1)
		}
	}
	return nil
}

// key returns a text that two expressions have in common only if they are the same lock. It is ""
// if e may be another one each time: because it comes from a variable of one of the nodes, from
// one that is assigned again, or from a call of anything but holdfast.
func (s *sharing) key(e ast.Expr, depth int, nodes ...ast.Node) string {
	if depth > 8 {
		return ""
	}
	var parts []ast.Expr
	var text string
	switch e := ast.Unparen(e).(type) {
	case *ast.BasicLit:
		return e.Value
	case *ast.Ident:
		return s.nameKey(e, depth, nodes...)
	case *ast.SelectorExpr:
		text, parts = "."+e.Sel.Name, []ast.Expr{e.X}
	case *ast.BinaryExpr:
		text, parts = e.Op.String(), []ast.Expr{e.X, e.Y}
	case *ast.UnaryExpr:
		text, parts = e.Op.String(), []ast.Expr{e.X}
	case *ast.StarExpr:
		text, parts = "*", []ast.Expr{e.X}
	case *ast.IndexExpr:
		text, parts = "[]", []ast.Expr{e.X, e.Index}
	case *ast.CallExpr:
		if fn := callee(s.pass.TypesInfo, e); fn == nil || fn.Pkg() == nil || !isHoldfast(fn.Pkg()) {
			return ""
		}
		text, parts = "()", append([]ast.Expr{e.Fun}, e.Args...)
	default:
		return ""
	}
	keys := []string{text}
	for _, part := range parts {
		key := s.key(part, depth+1, nodes...)
		if key == "" {
			return ""
		}
		keys = append(keys, key)
	}
	return strings.Join(keys, " ")
}

// nameKey is key for a name.
func (s *sharing) nameKey(id *ast.Ident, depth int, nodes ...ast.Node) string {
	v := objectOf(s.pass.TypesInfo, id)
	switch {
	case v == nil: // a package, a constant
		return id.Name
	case s.bound[v] != nil:
		return s.key(s.bound[v], depth+1, nodes...)
	case len(s.defs[v]) > 1:
		return ""
	}
	if value := s.defs.once(v); value != nil {
		if _, ok := types.Unalias(s.pass.TypesInfo.TypeOf(value)).(*types.Tuple); ok {
			return ""
		}
		return s.key(value, depth+1, nodes...)
	}
	if slices.ContainsFunc(nodes, func(n ast.Node) bool { return within(n, v.Pos()) }) {
		return ""
	}
	return fmt.Sprint(v.Name(), v.Pos())
}
