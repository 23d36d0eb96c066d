package faultproxy

import "fmt"

// What servers say when they refuse, for [Proxy.Answer] and [Proxy.Replace].
const (
	Loading     = "LOADING Redis is loading the dataset in memory"
	ReadOnly    = "READONLY You can't write against a read only replica."
	Busy        = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	ClusterDown = "CLUSTERDOWN The cluster is down"
	// OutOfMemory is said of a command, also of a script that may need memory.
	OutOfMemory = "OOM command not allowed when used memory > 'maxmemory'."
	TryAgain    = "TRYAGAIN Multiple keys request during rehashing of slot"
	MasterDown  = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
	// Misconf is said of writes when snapshots fail.
	Misconf = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
		"Commands that may modify the data set are disabled, because this instance is configured to report errors during " +
		"writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). " +
		"Please check the Redis logs for details about the RDB error."
)

// NoPerm refuses a command, in lower case, to a user.
func NoPerm(user, command string) string {
	return fmt.Sprintf("NOPERM User %s has no permissions to run the '%s' command", user, command)
}

// Moved says that a slot of the cluster is served at another address, a "host:port".
func Moved(slot int, addr string) string { return fmt.Sprintf("MOVED %d %s", slot, addr) }

// Ask says that a key is already at another address, a "host:port", to which its slot is being moved.
func Ask(slot int, addr string) string { return fmt.Sprintf("ASK %d %s", slot, addr) }
