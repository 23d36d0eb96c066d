// Package lua has the scripts of locks, and functions that send them; users of locks never need it.
// There is one .lua file per operation. Package internal/wire has the names of keys and channels.
//
// Every script is safe to run again after an unknown outcome, because it gets the hold count it
// must leave behind instead of a difference. Each .lua file says in its header what it takes, what
// it returns, and why a second run does no harm. Functions that several scripts need are fragments,
// in common. Scripts and fragments declare those that they need on lines "-- Needs", which package
// fragments replaces. No script needs a server newer than Redis 6.2.
//
// The functions here send one command each, with EVALSHA, and retry it once with EVAL on a server
// that does not know the script (a new one, or after SCRIPT FLUSH). They do not wait, retry
// otherwise or time out: that is up to the caller. Errors are of type [*rediserr.Error]; its Class
// says whether the command was refused for now, refused for good, or may have been executed.
//
// All functions are safe for concurrent use.
package lua
