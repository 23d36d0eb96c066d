// Package runner runs a command under a lock: what "holdfast run" does.
package runner

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"holdfast/cmd/holdfast/internal/child"
	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/status"
	"holdfast/cmd/holdfast/internal/textfile"
)

// Options says what to run, and under which lock.
type Options struct {
	connect.Flags
	Name       string
	Kind       Kind
	Quorum     bool           // a RedLock over all servers
	Args       []string       // the command
	Wait       time.Duration  // rlock.Forever and rlock.NoWait as well
	Lease      time.Duration  // of the watchdog
	KillAfter  *time.Duration // nil: 5 s, or a third of the lease if that is less
	AtLeast    time.Duration  // the lock stays taken for this long after its acquisition
	MaxRuntime time.Duration  // of the command; 0 is unlimited
	Ignore     bool           // let the command run when the lock is lost
	Conflict   int            // the exit status if another has the lock
	Quiet      bool
	Label      string // what others see; "" for "run" and the command's name

	SyncReplicas int  // see rlock.Options
	FsyncAlways  bool // of all servers of a quorum, see redlock.Options

	JSON        bool   // print messages as objects
	MetricsFile string // for node_exporter; "" for none

	metrics *textfile.Metrics // nil without a file
}

// Kind is the kind of a lock.
type Kind string

// The kinds.
const (
	Plain  Kind = "lock"
	Fair   Kind = "fair"
	Read   Kind = "read"
	Write  Kind = "write"
	Fenced Kind = "fenced"
)

const (
	// shortestLease leaves time to start a process, and to renew.
	shortestLease    = 100 * time.Millisecond
	defaultKillAfter = 5 * time.Second
	fewestServers    = 3 // of a quorum
)

// killAfter returns the time between SIGTERM and SIGKILL. A lease is renewed when a third of it is
// over, and once more at half of it if there was no reply. With more than a third here the command
// would be sent SIGTERM before that.
func (o Options) killAfter() time.Duration {
	if o.KillAfter != nil {
		return *o.KillAfter
	}
	return min(defaultKillAfter, o.Lease/3)
}

// reserve returns how long before the deadline the command is killed. Redis frees the lock a
// hundredth of the lease after the deadline, which is less than a busy machine may be late.
func (o Options) reserve() time.Duration { return min(o.Lease/10, time.Second) }

// check returns an error for options that cannot work.
func (o Options) check() error {
	var err error
	switch {
	case len(o.Args) == 0:
		err = errors.New("there is no command; use the form holdfast run NAME -- COMMAND")
	case o.Conflict < 0 || o.Conflict > 255:
		err = fmt.Errorf("--conflict-exit-code must be between 0 and 255 (got %d)", o.Conflict)
	case o.AtLeast < 0:
		err = fmt.Errorf("--at-least must not be negative (got %v)", o.AtLeast)
	case o.AtLeast > 0 && (o.Quorum || o.Kind == Read):
		err = errors.New("--at-least works neither with --quorum nor with --kind read")
	case o.MaxRuntime < 0:
		err = fmt.Errorf("--max-runtime must not be negative (got %v)", o.MaxRuntime)
	default:
		err = o.checkLock()
	}
	if err != nil {
		return status.New(status.Usage, err)
	}
	if _, code, err := child.Look(o.Args[0]); err != nil {
		return status.New(code, err)
	}
	return nil
}

// label returns what others see.
func (o Options) label() string {
	switch {
	case o.Label != "":
		return o.Label
	case len(o.Args) == 0:
		return "hold"
	}
	return "run " + filepath.Base(o.Args[0])
}

// checkLock returns an error for options about the lock that cannot work.
func (o Options) checkLock() error {
	switch {
	case o.Lease < shortestLease:
		return fmt.Errorf("--lease must be at least %v (got %v)", shortestLease, o.Lease)
	case o.killAfter() < 0 || o.killAfter() > o.Lease/3:
		return fmt.Errorf("--kill-after must be between 0 and %v, a third of --lease (got %v)",
			o.Lease/3, o.killAfter())
	case o.FsyncAlways && !o.Quorum:
		return errors.New("--fsync-always works only with --quorum; leave it out")
	case !o.Quorum:
	case o.SyncReplicas != 0:
		return errors.New("--sync-replicas does not work with --quorum; leave out one of the two")
	case o.Kind != Plain:
		return fmt.Errorf("--quorum works only with --kind lock (got %s)", o.Kind)
	case o.Sentinel != "":
		return errors.New("--quorum needs independent servers; leave out --sentinel")
	case len(o.Redis) < fewestServers:
		return fmt.Errorf("--quorum needs at least %d --redis servers; with fewer, no server may fail",
			fewestServers)
	}
	return nil
}
