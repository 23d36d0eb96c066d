// Package lua is the only place that knows the protocol: the scripts, one .lua file per operation, the names of
// keys and channels, the meaning of replies and of the server's errors.
//
// Every script is safe to run again after an unknown outcome, because it is told the hold count it must leave
// behind instead of a difference. Each .lua file says in its header what it takes, what it returns, and why a
// second run does no harm. What several of them need is in common, and is put in the place of a line "-- Uses", which
// stands where it is known that it is needed. Nothing in a script needs a server newer than Redis 6.2.
//
// The functions here send one command each, with EVALSHA, and repeat it once with EVAL on a server that does not
// know the script (a new one, or after SCRIPT FLUSH). They do not wait, retry or time out: that is the caller's.
// Errors are of type [*Error]; its Class tells whether the command was refused for now, refused for good, or may
// have been executed.
//
// All functions are safe for concurrent use.
package lua
