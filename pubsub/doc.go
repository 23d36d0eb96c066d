// Package pubsub wakes goroutines that wait for a message of Redis. If you use locks, you never
// need this package. Package pubsub works with channels, nodes and permits, and knows nothing about
// locks.
//
// A [Hub] keeps a connection and a goroutine for each node, regardless of the number of channels. A
// [Subscription] is a waiter on one or several channels. A Subscription has at most one permit,
// which means "something may have changed, ask again". A waiter gets a permit when
//
//   - the server confirms the channel, at first and after each interruption, because messages
//     before the confirmation are lost,
//   - the waiter joins a confirmed channel, because the last request of the waiter was earlier,
//   - the message "0" arrives, and this waiter is next,
//   - any other message arrives, which wakes every waiter. [Subscription.RetryAfter] returns a
//     number above 1, and such a number is no reason to ask,
//   - or another waiter leaves with an unused permit, unless the permit is for a number.
//
// A waiter needs a single loop and no special cases:
//
//	subscription := hub.Subscribe(pubsub.Topic{Channel: channel})
//	defer subscription.Close()
//	for !try() {
//		select {
//		case <-subscription.C():
//		case <-time.After(limit): // messages can be lost, so each wait has a limit
//		}
//	}
//
// # Paired channels
//
// A channel may have paired channels. See [Options].Paired. The server executes a command for all
// channels of a pair together, so a count of listeners (PUBSUB NUMSUB) includes this package on all
// or none. So if a channel has more listeners than its paired channel, the others are foreign. That
// is always true, even after a lost connection and after Close. Messages on a paired channel may be
// for this process alone. They go to [Options].OnDirect and give no permits.
//
// A message on a classic channel does not reach a sharded channel of the same name, and the other
// way round. With [Options].Classic, a connection also subscribes to classic channels, before the
// sharded channel. So the confirmation of the sharded channel covers both, and a waiter asks no
// more often. The connection keeps the classic channels as long as the sharded channel.
//
// # The life of a channel
//
//	Subscribe        Route          SUBSCRIBE        reply
//	---------> routing ----> wanted ---------> asking -----> confirmed
//	              ^                              |            |     |
//	              +----- rejected, MOVED --------+            |     | no subscriber
//	              +------ connection lost, slot moved --------+     | for a second
//	                                                                v
//	           wanted <----- subscriber joined ------ reply --- leaving
//	          dropped <--- no subscriber -------------/         (UNSUBSCRIBE)
//
// If the server rejects a channel with its paired channels, the channel goes back to wanted once,
// without the paired channels.
package pubsub
