// Package pubsub wakes goroutines that wait for a message of Redis. If you use locks, you never
// need this package. Package pubsub works with channels, nodes and permits, and knows nothing about
// locks.
//
// A [Hub] keeps one connection and one goroutine for each node, regardless of the number of
// channels. A [Subscription] is a waiter on one or several channels. A Subscription has at most one
// permit. The permit means "something may have changed, ask again". A waiter gets a permit in these
// cases:
//
//   - The server confirms the channel, at first and after each interruption. Messages before the
//     confirmation are lost.
//   - The waiter joins a confirmed channel. The last request of the waiter was earlier.
//   - The message "0" arrives, and this waiter is next.
//   - Any other message arrives, which wakes every waiter. [Subscription.RetryAfter] returns a
//     number above 1. With such a number, the waiter should not ask before the time has passed.
//   - Another waiter leaves with an unused permit. A permit for a number is not passed on.
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
// A channel may have paired channels. See [Options].Paired. The server executes a command for a
// channel and its paired channels as a whole, so this package listens on all of them or on none. If
// PUBSUB NUMSUB then reports more listeners for a channel than for its paired channel, the
// additional listeners are other clients. The comparison is right at any time, even after a lost
// connection and after Close. A message on a paired channel may be for this process alone. Such a
// message goes to [Options].OnDirect and gives no permit.
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
