package transport

// The phases of a command. [Call] and [withoutCancel] conclude them from the methods of the context
// that rueidis has called, and from their order:
//   - Err before anything else: rueidis has a connection;
//   - Done before Err: rueidis dials, or something else waits before a command is sent;
//   - Deadline or Done after Err: the connection is up, and rueidis is about to send.
//
// rueidis does not document this order. TestRueidisCallsTheContextInThisOrder in rueidis_test.go
// records it, and fails if an upgrade of rueidis changes it.
const (
	phaseBegun   = iota // rueidis has not read the context yet
	phaseDialing        // rueidis has no connection
	phaseSending        // rueidis has one, which may have been lost, or could not be opened
	phaseSent           // rueidis has sent the command, or is about to
)
