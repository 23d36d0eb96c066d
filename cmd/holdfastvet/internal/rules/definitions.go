package rules

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// definitions has what is assigned to the variables of a package, in the order of the text.
type definitions map[*types.Var][]definition

// definition is an assignment. The value is nil if it is not an expression of the text; one with
// several results counts for each variable.
type definition struct {
	value ast.Expr
	pos   token.Pos
}

// findDefinitions finds all definitions in a package.
func findDefinitions(pass *analysis.Pass) definitions {
	defs := make(definitions)
	for _, file := range pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, lhs := range n.Lhs {
					defs.add(pass.TypesInfo, lhs, i, n.Rhs, len(n.Lhs))
				}
			case *ast.ValueSpec:
				for i, name := range n.Names {
					defs.add(pass.TypesInfo, name, i, n.Values, len(n.Names))
				}
			case *ast.RangeStmt:
				defs.add(pass.TypesInfo, n.Key, 0, nil, 1)
				defs.add(pass.TypesInfo, n.Value, 0, nil, 1)
			case *ast.FuncType: // what a caller gives
				for _, fields := range []*ast.FieldList{n.Params, n.Results} {
					if fields != nil {
						defs.addFields(pass.TypesInfo, fields)
					}
				}
			case *ast.IncDecStmt:
				defs.add(pass.TypesInfo, n.X, 0, nil, 1)
			case *ast.UnaryExpr:
				if n.Op == token.AND { // a function with the address may assign
					defs.add(pass.TypesInfo, n.X, 0, nil, 1)
				}
			}
			return true
		})
	}
	return defs
}

// add notes that lhs, the i-th of n variables, is assigned one of the values.
func (d definitions) add(info *types.Info, lhs ast.Expr, i int, values []ast.Expr, n int) {
	id, ok := lhs.(*ast.Ident)
	if !ok {
		return
	}
	v, ok := info.ObjectOf(id).(*types.Var)
	if !ok {
		return
	}
	def := definition{pos: id.Pos()}
	switch {
	case len(values) == n:
		def.value = values[i]
	case len(values) == 1:
		def.value = values[0]
	}
	d[v] = append(d[v], def)
}

// addFields notes that parameters and results have values before anything is assigned.
func (d definitions) addFields(info *types.Info, fields *ast.FieldList) {
	for _, field := range fields.List {
		for _, name := range field.Names {
			d.add(info, name, 0, nil, 1)
		}
	}
}

// once returns the only value of v, or nil.
func (d definitions) once(v *types.Var) ast.Expr {
	if all := d[v]; len(all) == 1 {
		return all[0].value
	}
	return nil
}
