// Package lua contains the Lua scripts that implement locks in Redis, and the functions that send
// them. If you use locks, you never need this package. Each operation has its own .lua file.
// Package internal/wire defines the names of keys and channels.
//
// It is safe to run a script again if the outcome of the first run is unknown, because a script
// sets the hold count to an absolute value instead of adding to it. The header of each .lua file
// documents the arguments and the results, and why a second run does no harm. Functions that
// several scripts need are fragments in the folder common. A script names its fragments on lines
// "-- Needs", and package fragments inserts them. All scripts run on Redis 6.2 and newer.
//
// Each function here sends a single command with EVALSHA. If the server does not know the script,
// because the server is new or after SCRIPT FLUSH, the function sends the command once more with
// EVAL. The functions never wait, never retry in any other case, and have no timeout. All of that
// is up to the caller. Errors are of type *rediserr.Error. The Class of an error says whether Redis
// rejected the command for now or for good, or may have executed it.
//
// All functions are safe for concurrent use.
//
// # Terms
//
//   - An owner is a text such as "<client id>:<number>". Its hold count is the number of its nested
//     holds.
//   - The fence, or fencing token, is the number of an acquisition of a fenced lock.
//   - A waiter registers in Redis so that a release by another client can give it the lock. The
//     ticket of a registration is a number. It tells the registration apart from earlier
//     registrations of the same waiter.
//   - A release hands the lock over to a waiter of the same process, the successor, or grants the
//     lock to a registered waiter, which then receives a message.
//   - A streak counts the hand-overs and grants since the lock was last free.
//   - An announcement is a message to all waiters that the lock is free.
package lua
