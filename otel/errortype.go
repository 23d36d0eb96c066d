package holdfastotel

import "holdfast/internal/errortype"

// otherType is the value for what has no value of its own, by OpenTelemetry's conventions.
const otherType = errortype.Other

// ErrorType returns the value of [AttrErrorType] for an error of rlock, multilock or redlock, and
// "" for nil. The result is one of these:
//
//   - "expired", "gone", "forced" or "lost" for a lost lock
//   - "not_acquired", "no_quorum", "not_replicated", "outcome_unknown", "closed", "released" or
//     "not_held"
//   - "upgrade", "deadlock", "reentry" or "invalid" for a mistake of the caller
//   - "canceled" or "deadline_exceeded" for a context
//   - "server_" and the error code of the server, such as "server_OOM", or "server" for a code
//     unknown to holdfast
//   - "no_connection", or "no_reply" if a command or a new connection got no reply
//   - "delayed" for a node of a RedLock that does not count yet
//   - "_OTHER"
func ErrorType(err error) string { return errortype.Of(err) }
