// Package rules has the rules of holdfastvet, one analyzer each. Every rule would rather miss a
// mistake than report what is none.
//
// What they share: names.go knows holdfast's API, acquire.go finds where locks are acquired and
// uses.go what happens to the holds, flow.go follows the paths after an acquisition.
package rules

import "golang.org/x/tools/go/analysis"

// All returns the rules.
func All() []*analysis.Analyzer {
	return []*analysis.Analyzer{
		EarlyDefer,
		ErrorCompare,
		OuterContext,
		Undeferred,
		Units,
		UnlockError,
		Unreleased,
	}
}
