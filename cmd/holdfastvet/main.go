// Command holdfastvet finds mistakes in the use of holdfast's locks. It is a tool for go vet:
//
//	go vet -vettool=$(which holdfastvet) ./...
//
// and also runs by itself, where -fix applies the fixes that are safe:
//
//	holdfastvet [-fix] ./...
//
// "holdfastvet help" lists the rules, and "holdfastvet help unreleased" explains one.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"holdfast/cmd/holdfastvet/internal/rules"
)

func main() { multichecker.Main(rules.All()...) }
