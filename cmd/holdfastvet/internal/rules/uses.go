package rules

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// useKind says what a use of a hold does to it.
type useKind int

const (
	looks   useKind = iota // asks the hold for something, or compares it
	unlocks                // calls Unlock, UnlockTo, Leave or Detach
	leaves                 // passes it on: as an argument, a result, a part of something, an alias
	assigns                // puts another hold in the variable
)

// use is a use of the variable of a hold.
type use struct {
	id      *ast.Ident
	kind    useKind
	method  string        // the method that is called; "" if none is
	call    *ast.CallExpr // its call
	literal *ast.FuncLit  // the outermost literal inside the function that the use is in
	value   bool          // the method is not called but used as a value
}

// lookers are the methods of a hold that leave it held.
var lookers = []string{
	"Context", "Deadline", "Done", "Err", "Extend", "Name", "Owner", "Token", "Valid",
}

// findUses finds all uses of holds and all calls of lock.Unlock(ctx) in the function.
func (f *function) findUses(info *types.Info) {
	f.uses = make(map[*types.Var][]use)
	ast.PreorderStack(f.body, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if v, ok := info.Uses[n].(*types.Var); ok && isHold(v.Type()) && !v.IsField() {
				u := classify(info, n, stack)
				if u.method == "Done" || u.method == "Context" {
					if f.escapes(info, u.call, stack) {
						u.kind = leaves // whoever has it waits for the end of the hold
					}
				}
				f.uses[v] = append(f.uses[v], u)
			}
		case *ast.CallExpr:
			if lockUnlock(info, n) != nil {
				f.unlocks = append(f.unlocks, n)
			}
		}
		return true
	})
}

// escapes reports whether the value of a call leaves the function other than as an argument: it is
// returned, stored or sent, there or as a variable. stack is what encloses the call, and more.
func (f *function) escapes(info *types.Info, call *ast.CallExpr, stack []ast.Node) bool {
	enclosing := stack[:slices.Index(stack, ast.Node(call))]
	if len(enclosing) == 0 {
		return false
	}
	parent := enclosing[len(enclosing)-1]
	v := variableOf(info, parent, call)
	if v == nil {
		return keeps(info, parent, call)
	}
	found := false
	ast.PreorderStack(f.body, nil, func(n ast.Node, stack []ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && info.Uses[id] == v && keeps(info, stack[len(stack)-1], id)
		return !found
	})
	return found
}

// variableOf returns the variable of the function that an assignment or definition gives e to.
func variableOf(info *types.Info, n ast.Node, e ast.Expr) *types.Var {
	var to ast.Expr
	switch n := n.(type) {
	case *ast.AssignStmt:
		if i := slices.Index(n.Rhs, e); i >= 0 && len(n.Lhs) == len(n.Rhs) {
			to = n.Lhs[i]
		}
	case *ast.ValueSpec:
		if i := slices.Index(n.Values, e); i >= 0 && len(n.Names) == len(n.Values) {
			to = n.Names[i]
		}
	}
	if id, ok := to.(*ast.Ident); ok {
		v, _ := info.ObjectOf(id).(*types.Var)
		return v
	}
	return nil
}

// keeps reports whether n returns, stores or sends e.
func keeps(info *types.Info, n ast.Node, e ast.Expr) bool {
	switch n := n.(type) {
	case *ast.ReturnStmt, *ast.CompositeLit, *ast.KeyValueExpr:
		return true
	case *ast.SendStmt:
		return n.Value == e
	case *ast.AssignStmt:
		return slices.Contains(n.Rhs, e) && variableOf(info, n, e) == nil
	}
	return false
}

// definedOnce returns the only value of v, or nil. A value of several results counts for each.
func (f *function) definedOnce(v *types.Var) ast.Expr { return f.defs.once(v) }

// classify says what a use of a hold's variable is. stack is what encloses it.
func classify(info *types.Info, id *ast.Ident, stack []ast.Node) use {
	u := use{id: id, kind: leaves}
	for _, n := range stack {
		if literal, ok := n.(*ast.FuncLit); ok && u.literal == nil {
			u.literal = literal
		}
	}
	i := len(stack) - 1
	for i >= 0 {
		if _, ok := stack[i].(*ast.ParenExpr); !ok {
			break
		}
		i--
	}
	if i < 0 {
		return u
	}
	switch n := stack[i].(type) {
	case *ast.SelectorExpr:
		if slices.Contains(lookers, n.Sel.Name) {
			u.kind = looks
		}
		u.value = true
		if i > 0 {
			if call, ok := stack[i-1].(*ast.CallExpr); ok && call.Fun == n {
				u.method, u.call, u.value = n.Sel.Name, call, false
				if u.kind != looks {
					u.kind = unlocks
				}
			}
		}
	case *ast.BinaryExpr:
		u.kind = looks
	case *ast.AssignStmt:
		u.kind = assignment(n, id)
	case *ast.ValueSpec:
		if len(n.Names) == len(n.Values) && n.Names[slices.Index(n.Values, ast.Expr(id))].Name == "_" {
			u.kind = looks
		}
	case *ast.CallExpr:
		if harmless(info, n) {
			u.kind = looks
		}
	}
	return u
}

// assignment says what an assignment with the hold on one of its sides does.
func assignment(n *ast.AssignStmt, id *ast.Ident) useKind {
	if slices.Contains(n.Lhs, ast.Expr(id)) {
		return assigns
	}
	if i := slices.Index(n.Rhs, ast.Expr(id)); i >= 0 && len(n.Lhs) == len(n.Rhs) {
		if lhs, ok := n.Lhs[i].(*ast.Ident); ok && lhs.Name == "_" {
			return looks
		}
	}
	return leaves
}

// harmless reports whether call only prints or compares its arguments.
func harmless(info *types.Info, call *ast.CallExpr) bool {
	fn := callee(info, call)
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	return isPackage(fn.Pkg(), "fmt", "log", "log/slog", "testing") ||
		isTestify(fn) && strings.HasPrefix(fn.Name(), "Not")
}

// isTestify reports whether fn is an assertion of testify.
func isTestify(fn *types.Func) bool {
	return fn.Pkg() != nil && (strings.HasSuffix(fn.Pkg().Path(), "testify/require") ||
		strings.HasSuffix(fn.Pkg().Path(), "testify/assert"))
}

// gives returns the first use in n by which the hold of a is given back or leaves the function,
// if there is one. Of the uses in a literal it is the literal that gives the hold away.
func (f *function) gives(a *acquisition, n ast.Node) (use, bool) {
	for _, u := range f.uses[a.hold] {
		if u.kind != looks && u.kind != assigns && within(n, u.id.Pos()) {
			return u, true
		}
	}
	return use{}, false
}

// givesEarlier reports whether a literal before the acquisition gives the hold back, as in
// a deferred function that looks whether there is one.
func (f *function) givesEarlier(a *acquisition) bool {
	return slices.ContainsFunc(f.uses[a.hold], func(u use) bool {
		return u.kind != looks && u.literal != nil && u.id.Pos() < a.call.Pos()
	})
}
