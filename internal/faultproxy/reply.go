package faultproxy

import "fmt"

// What servers reply when they refuse, for [Proxy.Reply] and [Proxy.Replace].
const (
	Loading  = "LOADING Redis is loading the dataset in memory"
	ReadOnly = "READONLY You can't write against a read only replica."
	Busy     = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or " +
		"SHUTDOWN NOSAVE."
	ClusterDown = "CLUSTERDOWN The cluster is down"
	// OutOfMemory refuses a command, also a script, that may need memory.
	OutOfMemory = "OOM command not allowed when used memory > 'maxmemory'."
	TryAgain    = "TRYAGAIN Multiple keys request during rehashing of slot"
	MasterDown  = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
	// Misconf refuses writes when snapshots fail.
	Misconf = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to " +
		"persist to disk. " +
		"Commands that may modify the data set are disabled, because this instance is configured " +
		"to report errors during " +
		"writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). " +
		"Please check the Redis logs for details about the RDB error."
)

// NoPerm refuses a user a command, in lower case.
func NoPerm(user, command string) string {
	return fmt.Sprintf("NOPERM User %s has no permissions to run the '%s' command", user, command)
}

// Moved returns the redirection for a slot that is served at another address, a "host:port".
func Moved(slot int, addr string) string { return fmt.Sprintf("MOVED %d %s", slot, addr) }

// Ask returns the redirection for a key that has already moved to another address, a "host:port",
// with its slot to follow.
func Ask(slot int, addr string) string { return fmt.Sprintf("ASK %d %s", slot, addr) }
