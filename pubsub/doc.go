// Package pubsub wakes goroutines that wait for a message of Redis; users of locks never need it.
// Package rlock does. Package pubsub knows channels, nodes and permits, and nothing of locks.
//
// A [Hub] keeps one connection per node, whatever the number of channels, and one goroutine per
// connection. A [Subscription] is one waiter on one channel or several. It holds at most one
// permit, which means "something changed, ask again". It gets one when
//
//   - the server confirms the channel, the first time and after every interruption: messages
//     published before the confirmation are lost, so every waiter asks again;
//   - the waiter joins a channel that is confirmed already: its last request was before it
//     listened;
//   - the message "0" arrives and this waiter is the next to be woken;
//   - any other message arrives, which wakes every waiter. A number above 1 is returned by
//     [Subscription.Advice] and is no reason to ask;
//   - another waiter leaves with a permit that it did not use, unless that was for a number.
//
// A waiter needs one loop and no special cases:
//
//	subscription := hub.Subscribe(pubsub.Topic{Channel: channel})
//	defer subscription.Close()
//	for !try() {
//		select {
//		case <-subscription.C():
//		case <-time.After(limit): // messages can be lost, so no wait is unbounded
//		}
//	}
//
// # Paired channels
//
// A channel may have paired channels; see [Options].Paired. The server executes a command for all
// of them as a whole, so a count of its listeners (PUBSUB NUMSUB) includes this package on both, or
// on neither. So what a channel has more than its paired channel are other listeners, at any time,
// also while it lingers, when the connection is lost or the Hub is closed. Messages on a paired
// channel, which may be for this process alone, go to [Options].OnDirect and give no permits.
//
// # Classic channels beside sharded ones
//
// A message on a classic channel does not reach a sharded channel of the same name, nor the other
// way round. With [Options].Classic a connection also subscribes to classic channels, and sends
// that command before the command for their sharded channel. The confirmation of the sharded
// channel therefore covers both, and a waiter asks no more often. A connection keeps the classic
// channels as long as it keeps the sharded channel.
//
// # The life of a channel
//
//	Subscribe        Route          SUBSCRIBE        reply
//	---------> routing ----> wanted ---------> asking -----> confirmed
//	              ^                              |            |     |
//	              +------ refused, MOVED --------+            |     | no subscriber
//	              +------ connection lost, slot moved --------+     | for a second
//	                                                                v
//	           wanted <----- subscriber joined ------ reply --- leaving
//	          dropped <--- no subscriber -------------/         (UNSUBSCRIBE)
//
// A channel that is refused with its paired channels goes back to wanted once, without them.
package pubsub
