// Command holdfastvet finds mistakes in the use of holdfast's locks. -fix applies the fixes that
// are safe:
//
//	holdfastvet [-fix] ./...
//
// It is also a tool for go vet. Without the full path go vet may pass without having run it:
//
//	go vet -vettool="$(go env GOPATH)/bin/holdfastvet" ./...
//
// "holdfastvet help" lists the rules, and "holdfastvet help unreleased" explains one.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"holdfast/cmd/holdfastvet/internal/rules"
)

func main() { multichecker.Main(rules.All()...) }
