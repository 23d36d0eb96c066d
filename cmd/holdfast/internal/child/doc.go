// Package child runs a command that must not outlive a lock.
//
// Four processes take part:
//
//	run ──┬─ start, which becomes the command ── its descendants    one process group
//	      └─ guard                                                  a session of its own
//
// The command is the leader of a process group. It begins as "holdfast start", which waits until
// the guard knows the group and the terminal is the command's, and then executes the command. On
// Linux it is killed when run ends, but its descendants are not, and run cannot kill anything while
// it is stopped. So "holdfast guard" does all of that: it alone sends SIGTERM and SIGKILL. It reads
// from run when each is due, again whenever the lock is renewed. The end of that input means that
// run was killed: then the guard kills the group at once. If the guard itself is killed, run starts
// another one.
//
// The group's id stays reserved while its leader has not been waited for. So run does that last,
// when the group is empty and the guard has ended; no signal ever hits a stranger.
//
// A descendant that leaves the group but not the session, as timeout(1) and the jobs of a shell do,
// is found on Linux by its environment: see crew. One that leaves the session is out of reach.
//
// A guard can also keep a file instead of a group: see [FileGuard].
//
// On a terminal, run is a small shell with one job: it gives the terminal to the group and takes it
// back, and when the command is stopped with Ctrl-Z, it stops as well, until it is continued.
package child
