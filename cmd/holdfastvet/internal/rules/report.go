package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// ignore is the comment that silences a rule on its own line and the next. A reason has to follow.
const ignore = "//holdfastvet:ignore "

// report reports a mistake in n, unless a comment silences the rule there.
func report(pass *analysis.Pass, n analysis.Range, message string, fixes ...analysis.SuggestedFix) {
	if silenced(pass, n.Pos()) {
		return
	}
	pass.Report(analysis.Diagnostic{
		Pos: n.Pos(), End: n.End(), Message: message, SuggestedFixes: fixes,
	})
}

// silenced reports whether a comment on the line of pos, or on the line before, silences the rule.
func silenced(pass *analysis.Pass, pos token.Pos) bool {
	for _, file := range pass.Files {
		if file.FileStart > pos || pos >= file.FileEnd {
			continue
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				rule, reason, _ := strings.Cut(strings.TrimPrefix(c.Text, ignore), " ")
				if !strings.HasPrefix(c.Text, ignore) || rule != pass.Analyzer.Name || reason == "" {
					continue
				}
				if away := line(pass, pos) - line(pass, c.Pos()); away == 0 || away == 1 {
					return true
				}
			}
		}
	}
	return false
}

// line returns the number of the line of pos.
func line(pass *analysis.Pass, pos token.Pos) int { return pass.Fset.Position(pos).Line }

// fix returns a fix that replaces n by text.
func fix(message string, n ast.Node, text string) analysis.SuggestedFix {
	return analysis.SuggestedFix{Message: message, TextEdits: []analysis.TextEdit{
		{Pos: n.Pos(), End: n.End(), NewText: []byte(text)},
	}}
}

// lookup returns what a name means at n.
func lookup(pass *analysis.Pass, n ast.Node, name string) types.Object {
	scope := pass.Pkg.Scope().Innermost(n.Pos())
	if scope == nil {
		return nil
	}
	_, obj := scope.LookupParent(name, n.Pos())
	return obj
}

// source returns the text of n, or "".
func source(pass *analysis.Pass, n ast.Node) string { return text(pass, n.Pos(), n.End()) }

// between returns the text after n and before next, or "".
func between(pass *analysis.Pass, n, next ast.Node) string {
	return text(pass, n.End(), next.Pos())
}

// text returns the text of the file from pos to end, or "".
func text(pass *analysis.Pass, pos, end token.Pos) string {
	file := pass.Fset.File(pos)
	content, err := pass.ReadFile(file.Name())
	if err != nil || file.Offset(end) > len(content) {
		return ""
	}
	return string(content[file.Offset(pos):file.Offset(end)])
}
