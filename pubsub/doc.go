// Package pubsub wakes goroutines that wait for a Redis message. If you use locks, you never need
// this package. The package deals with channels, nodes and permits, and knows nothing about locks.
//
// A [Hub] keeps one connection and one goroutine for each node, no matter how many channels there
// are. A [Subscription] is a waiter on one or more channels. A permit means "something may have
// changed, so ask again". How to ask is up to the waiter, for example by a request to Redis. A
// waiter has at most one permit at a time, even after several messages. Waiters for the same thing
// use the same [Topic].Name, and the waiters of a channel stand in line in the order of arrival.
//
// A waiter gets a permit in these cases:
//
//   - The server has confirmed the channel, at first or after an interruption. Messages that were
//     sent before the confirmation are lost, so something may have changed.
//   - The waiter has called [Hub.Subscribe] for a channel that is confirmed already. Something may
//     have changed since the waiter last asked.
//   - The message "0" has arrived. For each [Topic].Name, the message wakes the first waiter in
//     line without a pending permit to ask. This waiter then goes to the back of the line.
//   - Any other message has arrived. The message wakes all waiters on the channel. If the message
//     is a number above 1, each of these permits carries the number.
//   - Another waiter with the same Name has closed its Subscription without receiving its permit.
//     The permit goes to the next in line, unless the permit carried a number.
//
// The number in a permit is a time in milliseconds. A permit with a number means "ask again after
// this time". Every other permit is a permit to ask at once. A publisher sends a number if the
// waiters might otherwise ask too late. For example, package lua sends the length of a short lease
// that began after the waiters had asked.
//
// A simple waiter asks after every permit:
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
// This loop is always correct, but wastes a request if the permit carries a number. To save the
// request, call [Subscription.RetryAfter] after each receive, and ask at the returned time:
//
//	next := time.Now() // when to ask
//	for {
//		select {
//		case <-subscription.C():
//			after := time.Duration(subscription.RetryAfter()) * time.Millisecond
//			if retry := time.Now().Add(after); retry.Before(next) {
//				next = retry
//			}
//		case <-time.After(time.Until(next)):
//			if try() {
//				return
//			}
//			next = time.Now().Add(limit)
//		}
//	}
//
// The time counts from the receive. If you receive several numbers before you ask, ask at the
// earliest time. If each number restarted the timer, a series of numbers could postpone the request
// without end.
//
// # Paired channels
//
// A paired channel accompanies a channel, and only Hubs listen there. See [Options].Paired. A
// paired channel has one of two uses:
//
//   - All Hubs have the same paired channel, which shows whether other programs listen on the
//     channel. A Hub subscribes to both with one command, and unsubscribes with one command. So at
//     any time, even after a lost connection, the Hub listens on both or on neither. If PUBSUB
//     NUMSUB reports more listeners for the channel than for the paired channel, other programs
//     listen as well. A Hub whose paired channels were rejected looks like such a program.
//   - Each Hub has a paired channel of its own, and receives messages for this Hub alone there.
//
// A message on a paired channel goes to [Options].OnDirect and gives no permit.
//
// # Classic channels
//
// A Redis cluster has two kinds of channels. A message on a sharded channel stays with the nodes
// that have the slot of the channel, and a message on a classic channel goes to all nodes. Both
// kinds can have a channel with the same name, but a message on one kind does not reach listeners
// on the other.
//
// A Hub with [Options].Sharded can also listen on classic channels, see [Options].Classic. The Hub
// subscribes first to the classic channels and then to the sharded channel, on the same connection.
// The confirmation of the sharded channel therefore covers both, and the waiter gets a single
// permit. The connection keeps the classic channels as long as the sharded channel.
//
// # The life of a channel
//
//	Subscribe        Route          SUBSCRIBE        reply
//	---------> routing ----> wanted ---------> asking -----> confirmed
//	              ^                              |            |     |
//	              +----- rejected, MOVED --------+            |     | no waiter
//	              +------ connection lost, slot moved --------+     | for a second
//	                                                                v
//	           wanted <----- waiter joined ---------- reply --- leaving
//	          dropped <--- no waiter -----------------/         (UNSUBSCRIBE)
//
// A channel is routing until [Options].Route has returned the node, and wanted until the connection
// to the node can send SUBSCRIBE. A channel that is asking or leaving waits for the reply to the
// command. A dropped channel is gone, and the next Subscribe begins anew.
//
// If a channel loses its last waiter while it is routing or wanted, the Hub drops the channel at
// once. A channel that is asking stays until the reply. If the connection is lost in any state, a
// channel with waiters is routing again. Wherever the diagram leads to routing or wanted, the Hub
// drops a channel without waiters instead.
//
// If the server rejects a channel together with its paired channels, the Hub tries the channel once
// more without them.
package pubsub
