package contestants

import "holdfast/rlock"

// announcing returns options with the fast paths off.
func announcing() rlock.Options { return rlock.Options{HandOver: rlock.HandOverNone} }
