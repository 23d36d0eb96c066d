package lua

import "context"

// ReleaseChannels returns the channels on which releases of a lock of any kind are announced. queue
// has the owners that wait for a fair lock.
func ReleaseChannels(lock string, queue []string) []string {
	channels := []string{Channel(lock), RWChannel(lock)}
	for _, owner := range queue {
		channels = append(channels, FairChannel(lock, owner))
	}
	return channels
}

// Subscribers returns how many connections to a node listen on the sharded or the classic channels.
// Those that listen on both kinds, see [Both], count as listeners on the sharded ones.
func Subscribers(ctx context.Context, node Redis, sharded bool, channels []string) (int, error) {
	if sharded {
		return subscribers(ctx, node, "SHARDNUMSUB", channels)
	}
	if len(channels) == 0 {
		return 0, nil
	}
	total, err := subscribers(ctx, node, "NUMSUB", channels)
	if err != nil {
		return 0, err
	}
	marks := make([]string, len(channels))
	for i, channel := range channels {
		marks[i] = classicMark(channel)
	}
	both, err := subscribers(ctx, node, "NUMSUB", marks)
	return max(0, total-both), err
}

func subscribers(ctx context.Context, node Redis, count string, channels []string) (int, error) {
	command := node.B().Arbitrary("PUBSUB", count).Args(channels...)
	counts, err := node.Do(ctx, command.Build()).ToArray()
	if err != nil {
		return 0, Classify(err)
	}
	total := 0
	for i := 1; i < len(counts); i += 2 {
		n, err := counts[i].AsInt64()
		if err != nil {
			return 0, Classify(err)
		}
		total += int(n)
	}
	return total, nil
}
