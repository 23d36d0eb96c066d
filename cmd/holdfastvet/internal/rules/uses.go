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
				f.uses[v] = append(f.uses[v], classify(info, n, stack))
			}
		case *ast.CallExpr:
			if lockUnlock(info, n) != nil {
				f.unlocks = append(f.unlocks, n)
			}
		}
		return true
	})
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
