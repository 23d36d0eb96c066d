// Package mistakes has mistakes, five or more for each rule, in code as it is written. A comment
// "mistake: rule" is on the line of each.
package mistakes

import "holdfast/rlock"

// app is what the functions belong to.
type app struct {
	locks  *rlock.Client
	ledger *rlock.Lock
}
