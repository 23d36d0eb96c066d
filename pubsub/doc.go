// Package pubsub wakes goroutines that wait for a Redis message. If you use locks, you never need
// this package. The package deals with channels, nodes and permits, and knows nothing about locks.
//
// A [Hub] keeps one connection and one goroutine for each node, no matter how many channels there
// are. A [Subscription] is one waiter on one or more channels, and has at most one permit. A permit
// means "something may have changed, so ask again". A permit may also carry a number of
// milliseconds, which [Subscription.RetryAfter] returns. The waiter should then ask again when that
// time has passed.
//
// A waiter gets a permit in these cases:
//
//   - The server has confirmed the channel, at first or after an interruption. Messages that were
//     sent before the confirmation are lost, so something may have changed.
//   - The waiter has joined a channel that is confirmed already. Something may have changed since
//     the waiter last asked.
//   - The message "0" has arrived, and it is the turn of this waiter.
//   - Any other message has arrived. Such a message wakes every waiter, and a number above 1 is the
//     number of milliseconds.
//   - Another waiter has left without using its permit, unless that permit carried a number.
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
// A paired channel tells the listeners of this package apart from other listeners. This package
// listens on a channel and on its paired channel, and nobody else listens on the paired channel.
// See [Options].Paired. So if PUBSUB NUMSUB reports more listeners for the channel than for the
// paired channel, other clients listen as well. The server subscribes and unsubscribes both with
// one command, so the comparison is right at any time, even after a lost connection. A message on a
// paired channel may be for this process alone. Such a message goes to [Options].OnDirect and gives
// no permit.
//
// A message on a classic channel does not reach the sharded channel with the same name, nor the
// other way round. With [Options].Classic, a connection first subscribes to the classic channels
// and then to the sharded channel. The confirmation of the sharded channel therefore covers both,
// and the waiter gets a single permit. The connection keeps the classic channels as long as it
// keeps the sharded channel.
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
// If the server rejects a channel together with its paired channels, the Hub tries the channel once
// more without them.
package pubsub
