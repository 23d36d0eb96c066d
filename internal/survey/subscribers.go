package survey

import (
	"context"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
)

// ReleaseChannels returns the channels for announcements of a lock of any kind. queue has the
// owners that wait for a fair lock.
func ReleaseChannels(lock string, queue []string) []string {
	channels := []string{wire.Channel(lock), wire.RWChannel(lock)}
	for _, owner := range queue {
		channels = append(channels, wire.FairChannel(lock, owner))
	}
	return channels
}

// Subscribers returns how many connections to a node listen on the sharded or the classic channels.
// A connection that listens on both kinds, as with [wire.Both], counts only for the sharded
// channels.
func Subscribers(ctx context.Context, node rueidis.CoreClient, sharded bool, channels []string,
) (int, error) {
	command, names := "SHARDNUMSUB", channels
	if !sharded {
		command, names = "NUMSUB", make([]string, 0, 2*len(channels))
		for _, channel := range channels {
			names = append(names, wire.ClassicChannels(channel)...)
		}
	}
	counts, err := node.Do(ctx, node.B().Arbitrary("PUBSUB", command).Args(names...).Build()).ToArray()
	if err != nil {
		return 0, rediserr.Classify(err)
	}
	total := 0
	for i := 1; i < len(counts); i += 2 {
		n, err := counts[i].AsInt64()
		if err != nil {
			return 0, rediserr.Classify(err)
		}
		if !sharded && i%4 == 3 {
			n = -n // listeners on both kinds, by the channel that only they listen on
		}
		total += int(n)
	}
	return total, nil
}
