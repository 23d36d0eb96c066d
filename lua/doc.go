// Package lua has the scripts of locks, and functions that send the scripts. If you use locks, you
// never need this package. Each operation has its own .lua file. Package internal/wire has the
// names of keys and channels.
//
// You can run every script again after an unknown outcome, because a script receives the hold count
// to leave behind, not a difference. The header of each .lua file documents its arguments, its
// results, and why a second run does no harm. Common functions are fragments, in the folder common.
// A script or fragment names its fragments on lines "-- Needs", and package fragments inserts them.
// All scripts run on Redis 6.2 and newer.
//
// Each function here sends a single command with EVALSHA. If the server does not know the script,
// because the server is new or after SCRIPT FLUSH, the function repeats the command once with EVAL.
// The functions do not wait, do not repeat commands otherwise, and have no timeout. The caller is
// responsible for all of these. Errors have the type *rediserr.Error, and its Class says whether
// Redis rejected the command for now, rejected the command for good, or may have executed the
// command.
//
// All functions are safe for concurrent use.
package lua
