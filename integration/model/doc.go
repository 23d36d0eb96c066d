// Package model has TLA+ models of the parts of locks that rest on arguments, and runs TLC on them.
//
// Its tests check each model in all its states, leave out each rule once and expect the
// counterexample that the comment of the rule tells, and play traces of the models against the real
// scripts and state machines. They need Java and TLC, and are built with the tag model only: run
// `make model`. README.md says what each model covers.
package model
