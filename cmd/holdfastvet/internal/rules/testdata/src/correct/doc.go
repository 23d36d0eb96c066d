// Package correct has code in which nothing is to be found.
package correct

import "holdfast/rlock"

// app is what the functions belong to.
type app struct {
	locks  *rlock.Client
	ledger *rlock.Lock
}
