// Package model has TLA+ models of those parts of the locks that rest on an argument, and runs TLC.
//
// Its tests check each model in all its states; leave out each rule once and expect the
// counterexample that the comment of the rule describes; and play traces of HandOver against the
// real scripts and queues. All of them need Java and TLC, and are built with the tag model only:
// run `make model`. README.md says what each model covers.
package model
