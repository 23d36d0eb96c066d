package rivals

import "holdfast/rlock"

// announcing are the options with the fast paths off.
func announcing() rlock.Options { return rlock.Options{HandOver: rlock.HandOverNone} }
