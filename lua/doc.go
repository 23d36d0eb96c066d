// Package lua is for those who work on holdfast, not for its users: it is the only place that knows
// the protocol. It has the scripts, one .lua file per operation, the names of keys and channels,
// the meaning of replies and of the server's errors.
//
// Every script is safe to run again after an unknown outcome, because it is told the hold count it
// must leave behind instead of a difference. Each .lua file says in its header what it takes, what
// it returns, and why a second run does no harm. Functions that several scripts need are fragments,
// in common; scripts and fragments declare those that they need on lines "-- Needs", which package
// fragments replaces. Nothing in a script needs a server newer than Redis 6.2.
//
// The functions here send one command each, with EVALSHA, and retry it once with EVAL on a server
// that does not know the script (a new one, or after SCRIPT FLUSH). They do not wait, retry
// otherwise or time out: that is the caller's. Errors are of type [*Error]; its Class tells whether
// the command was refused for now, refused for good, or may have been executed.
//
// All functions are safe for concurrent use.
package lua
