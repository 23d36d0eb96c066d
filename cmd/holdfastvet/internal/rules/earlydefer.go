package rules

import (
	"fmt"
	"go/ast"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// EarlyDefer reports a deferred release that comes before the error is looked at.
var EarlyDefer = &analysis.Analyzer{
	Name: "earlydefer",
	Doc: `report a deferred release that comes before the error is checked

If the lock was not acquired, the hold is nil. Its Unlock then returns ErrNotHeld, and
UnlockTo adds ErrNotHeld to the error of the acquisition:

	hold, err := lock.Lock(ctx, lease)
	defer hold.UnlockTo(&err)
	if err != nil {
		return err
	}

The rule also reports a deferred release of a hold whose error is ignored, because the
code after it runs even if the lock was not acquired. The fix puts the defer after the
error check if that is the next statement.`,
	Requires: []*analysis.Analyzer{acquired},
	Run:      runEarlyDefer,
}

func runEarlyDefer(pass *analysis.Pass) (any, error) {
	for _, f := range pass.ResultOf[acquired].(*functions).all {
		for _, a := range f.acquisitions {
			if a.hold == nil || a.node == nil {
				continue
			}
			if d := f.earlyDefer(pass, a); d != nil {
				report(pass, d, fmt.Sprintf("%s is released by defer before the error of %v is "+
					"checked, so a failed acquisition also returns ErrNotHeld; write defer after the "+
					"error check", a.hold.Name(), a), f.swap(pass, d, a)...)
			}
		}
	}
	return nil, nil
}

// earlyDefer returns the defer statement that comes too early, or nil.
func (f *function) earlyDefer(pass *analysis.Pass, a *acquisition) *ast.DeferStmt {
	if !f.hasError(a) {
		return nil
	}
	var early *ast.DeferStmt
	w := walk{info: pass.TypesInfo, f: f, a: a}
	w.visit = func(n ast.Node, _ *path) bool {
		d, isDefer := n.(*ast.DeferStmt)
		if isDefer && f.releasesBlindly(&w, a, d) {
			early = d
			return false
		}
		for _, u := range f.uses[a.hold] {
			if within(n, u.id.Pos()) && (u.kind != looks || u.call == nil ||
				u.method == "Err" || u.method == "Valid" || u.method == "Done") {
				return false // it is compared, asked whether it is held, or not here any more
			}
		}
		return !w.asksError(n)
	}
	w.run()
	return early
}

// hasError reports whether the acquisition has an error to look at: a variable, or nothing.
func (f *function) hasError(a *acquisition) bool {
	switch n := a.node.(type) {
	case *ast.AssignStmt:
		if len(n.Lhs) != 2 {
			return false
		}
		_, ok := n.Lhs[1].(*ast.Ident)
		return ok
	case *ast.ValueSpec:
		return len(n.Names) == 2
	}
	return false
}

// releasesBlindly reports whether d releases the hold and looks neither at the hold nor at the
// error.
func (f *function) releasesBlindly(w *walk, a *acquisition, d *ast.DeferStmt) bool {
	releases := false
	for _, u := range f.uses[a.hold] {
		if !within(d, u.id.Pos()) {
			continue
		}
		if u.method != "Unlock" && u.method != "UnlockTo" {
			return false
		}
		releases = true
	}
	literal, ok := d.Call.Fun.(*ast.FuncLit)
	return releases && (!ok || !w.asksError(literal))
}

// swap returns the fix: the defer statement goes behind the check of the error that follows it.
func (f *function) swap(
	pass *analysis.Pass, d *ast.DeferStmt, a *acquisition,
) []analysis.SuggestedFix {
	var fixes []analysis.SuggestedFix
	ast.Inspect(f.body, func(n ast.Node) bool {
		block, ok := n.(*ast.BlockStmt)
		if !ok {
			return true
		}
		for i, stmt := range block.List {
			if stmt != d || i+1 == len(block.List) {
				continue
			}
			check, ok := block.List[i+1].(*ast.IfStmt)
			if !ok || check.Init != nil || check.Else != nil || !returns(check.Body) {
				continue
			}
			w := walk{info: pass.TypesInfo, f: f, a: a}
			if w.judge(check.Cond, path{}) != no {
				continue
			}
			release := source(pass, d)
			if release == "" {
				continue
			}
			end := check.Pos()
			if strings.TrimSpace(between(pass, d, check)) != "" { // a comment, which stays
				end = d.End()
			}
			fixes = append(fixes, analysis.SuggestedFix{
				Message: "release after the error check",
				TextEdits: []analysis.TextEdit{
					{Pos: d.Pos(), End: end},
					{Pos: check.End(), End: check.End(), NewText: []byte("\n" + release)},
				},
			})
		}
		return true
	})
	return fixes
}

// returns reports whether the block ends with a return.
func returns(block *ast.BlockStmt) bool {
	if len(block.List) == 0 {
		return false
	}
	_, ok := block.List[len(block.List)-1].(*ast.ReturnStmt)
	return ok
}
