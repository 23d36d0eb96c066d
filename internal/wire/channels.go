package wire

import (
	"regexp"
	"strings"
)

// Channels selects the kinds of channels on which messages travel. A message on one kind does not
// reach listeners on the other. Outside a cluster all clients use Classic.
type Channels int

// The kinds of channels.
const (
	Classic Channels = iota // PUBLISH and SUBSCRIBE
	Sharded                 // SPUBLISH and SSUBSCRIBE, since Redis 7
	// Both is Sharded, and also Classic while a client listens only there, as Redisson before 3.28 may
	// do.
	Both
)

// Channel returns the channel on which releases of the reentrant lock n are announced.
func Channel(n string) string { return Prefix("redisson_lock__channel", n) }

// RWChannel is [Channel] for the read-write lock n, in both modes.
func RWChannel(n string) string { return Prefix("redisson_rwlock", n) }

// presentChannel returns the channel on which those clients listen that may register for the lock
// n.
func presentChannel(n string) string { return Prefix("holdfast_lock_present", n) }

// FairChannel returns the channel on which an owner that waits for the fair lock n gets its turn.
func FairChannel(n, owner string) string { return Channel(n) + ":" + owner }

// ClassicChannels returns the classic channels on which a client listens with [Both], beside a
// sharded channel. The first has the same name. Only clients of holdfast listen on the second, so
// scripts can subtract them from the listeners on the first.
func ClassicChannels(channel string) []string {
	return []string{channel, "holdfast_classic:" + channel}
}

// PairedChannels returns the channels on which a client that may register listens beside the
// [Channel] of a lock. The first shows that the client may register. The second belongs to the
// client alone, and receives grants, which [ParseGrant] parses. For any other channel,
// PairedChannels returns nil.
func PairedChannels(channel, client string) []string {
	rest, ok := strings.CutPrefix(channel, "redisson_lock__channel:")
	if !ok || waiterChannel.MatchString(channel) {
		return nil
	}
	present := "holdfast_lock_present:" + rest
	return []string{present, present + ":" + client}
}

// GrantChannel returns the last of the [PairedChannels] for the [Channel] of the lock n.
func GrantChannel(n, client string) string { return presentChannel(n) + ":" + client }

// waiterChannel matches the channel of a fair lock's waiter. No client registers for such a name.
var waiterChannel = regexp.MustCompile(
	`:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:\d+$`)

// AnnouncementChannel returns the channel on which a client listens beside [Channel] if it waits
// for the lock without a registration, but registers for other locks. While the client listens,
// releases are announced.
func AnnouncementChannel(name string) string { return presentChannel(name) + ":announce" }
