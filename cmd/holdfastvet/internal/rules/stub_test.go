package rules_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

var update = flag.Bool("update", false, "write the stubs in testdata anew")

// The rules are tested with stubs of holdfast's packages, which load quickly and have no
// dependencies. This is where they come from: go test ./internal/rules -run Stubs -update
func TestStubsHaveTheSameInterfaceAsHoldfast(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../../..")
	require.NoError(t, err)
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedImports | packages.NeedTypes | packages.NeedSyntax,
		Dir:  root,
		Env:  append(os.Environ(), "GOWORK=off"),
	}, "./rlock", "./multilock", "./redlock")
	require.NoError(t, err)
	require.Zero(t, packages.PrintErrors(loaded))
	for _, pkg := range loaded {
		file := filepath.Join("testdata", "src", "holdfast", pkg.Name, pkg.Name+".go")
		want, err := newStub(pkg.Types).source()
		require.NoError(t, err)
		if *update {
			require.NoError(t, os.WriteFile(file, want, 0o600))
		}
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
}

// stub writes a package that has the exported names of another one, and does nothing.
type stub struct {
	pkg     *types.Package
	imports map[string]bool
	own     map[*types.TypeName]string // types of internal packages that the package has as aliases
}

// newStub returns the stub of a package.
func newStub(pkg *types.Package) *stub {
	s := &stub{pkg: pkg, imports: make(map[string]bool), own: make(map[*types.TypeName]string)}
	for _, name := range pkg.Scope().Names() {
		obj, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if ok && obj.Exported() && obj.IsAlias() {
			if named, ok := types.Unalias(obj.Type()).(*types.Named); ok {
				s.own[named.Obj()] = name
			}
		}
	}
	return s
}

// source returns the package.
func (s *stub) source() ([]byte, error) {
	var body bytes.Buffer
	for _, name := range s.pkg.Scope().Names() {
		obj := s.pkg.Scope().Lookup(name)
		if obj.Exported() && name != "Internals" { // users cannot call that
			s.object(&body, obj)
		}
	}
	var head bytes.Buffer
	fmt.Fprintf(&head, "// Package %s stands in for holdfast's. Made by stub_test.go.\n", s.pkg.Name())
	fmt.Fprintf(&head, "package %s\n\n", s.pkg.Name())
	for _, path := range slices.Sorted(maps.Keys(s.imports)) {
		fmt.Fprintf(&head, "import %q\n", path)
	}
	return format.Source(append(head.Bytes(), body.Bytes()...))
}

// object writes a declaration.
func (s *stub) object(w *bytes.Buffer, obj types.Object) {
	switch obj := obj.(type) {
	case *types.Const:
		fmt.Fprintf(w, "\nconst %s %s = %s\n", obj.Name(), s.typ(obj.Type()), obj.Val().ExactString())
	case *types.Var:
		fmt.Fprintf(w, "\nvar %s %s\n", obj.Name(), s.typ(obj.Type()))
	case *types.Func:
		s.function(w, "", obj)
	case *types.TypeName:
		named, ok := types.Unalias(obj.Type()).(*types.Named)
		if !ok {
			fmt.Fprintf(w, "\ntype %s = %s\n", obj.Name(), s.typ(obj.Type()))
			return
		}
		fmt.Fprintf(w, "\ntype %s %s\n", obj.Name(), s.underlying(named))
		methods := slices.Collect(named.Methods())
		slices.SortFunc(methods, func(a, b *types.Func) int {
			return strings.Compare(a.Name(), b.Name())
		})
		for _, m := range methods {
			if m.Exported() {
				pointer := ""
				if _, ok := m.Signature().Recv().Type().(*types.Pointer); ok {
					pointer = "*"
				}
				s.function(w, "("+pointer+obj.Name()+") ", m)
			}
		}
	}
}

// underlying writes what a type is made of, without what is not exported.
func (s *stub) underlying(named *types.Named) string {
	fields, ok := named.Underlying().(*types.Struct)
	if !ok {
		return s.typ(named.Underlying())
	}
	var b strings.Builder
	b.WriteString("struct {\n")
	hidden := false
	for f := range fields.Fields() {
		if f.Exported() {
			fmt.Fprintf(&b, "%s %s\n", f.Name(), s.typ(f.Type()))
		}
		hidden = hidden || !f.Exported()
	}
	if hidden {
		b.WriteString("_ int\n")
	}
	return b.String() + "}"
}

// function writes a function or method that returns zero values.
func (s *stub) function(w *bytes.Buffer, recv string, fn *types.Func) {
	sig := fn.Signature()
	plain := types.NewSignatureType(nil, nil, nil, sig.Params(), sig.Results(), sig.Variadic())
	var params []string
	for p := range sig.TypeParams().TypeParams() {
		params = append(params, p.Obj().Name()+" "+s.typ(p.Constraint()))
	}
	of := ""
	if len(params) > 0 {
		of = "[" + strings.Join(params, ", ") + "]"
	}
	var zeros []string
	for v := range sig.Results().Variables() {
		zeros = append(zeros, "*new("+s.typ(v.Type())+")")
	}
	fmt.Fprintf(w, "\nfunc %s%s%s%s {\nreturn %s\n}\n", recv, fn.Name(), of,
		strings.TrimPrefix(s.typ(plain), "func"), strings.Join(zeros, ", "))
}

// typ writes a type. Types of internal packages are written as the alias that the package has.
func (s *stub) typ(t types.Type) string {
	text := types.TypeString(t, func(p *types.Package) string {
		if p == s.pkg {
			return ""
		}
		if !strings.Contains(p.Path(), "internal/") && !s.isOwn(p) {
			s.imports[p.Path()] = true
		}
		return p.Name()
	})
	for obj, name := range s.own {
		text = strings.ReplaceAll(text, obj.Pkg().Name()+"."+obj.Name(), name)
	}
	return text
}

// isOwn reports whether all that the package shows of p are aliases.
func (s *stub) isOwn(p *types.Package) bool {
	for obj := range s.own {
		if obj.Pkg() == p {
			return true
		}
	}
	return false
}
