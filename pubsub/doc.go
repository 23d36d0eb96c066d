// Package pubsub wakes goroutines of package rlock that wait for a message on a Redis channel;
// users of locks do not need it. It knows channels, nodes and permits, and nothing of locks.
//
// A [Hub] keeps one connection per node, whatever the number of channels, and
// one goroutine per connection. A [Subscription] is one waiter on one channel, or
// on several. It holds at most one permit, which means "something changed, look again". It
// gets one when
//
//   - the server confirms the channel, the first time and after every
//     interruption: what was published before the confirmation is gone, so
//     everybody looks again;
//   - the waiter joins a channel that is confirmed already: its last look was
//     before it listened;
//   - the message "0" arrives and it is this waiter's turn;
//   - any other message arrives: everybody is woken. If it is a number above 1,
//     [Subscription.Advice] gives that, and it is no reason to look;
//   - another waiter leaves with a permit that it did not use.
//
// So a waiter needs one loop and no special cases:
//
//	subscription := hub.Subscribe(channel)
//	defer subscription.Close()
//	for !try() {
//		select {
//		case <-subscription.C():
//		case <-time.After(limit): // messages can be lost, so no wait is unbounded
//		}
//	}
//
// # Paired
//
// A channel may have paired channels, which are subscribed and unsubscribed
// with it, by one command each, which the server executes as a whole. So whoever
// counts the listeners of a channel and of its paired channel on the server (PUBSUB
// NUMSUB) sees those of this package on both or on neither, and the surplus of the
// channel is the others, at any instant: while it is subscribed, while it lingers,
// when the connection is lost or the Hub is closed. And a channel that only this
// process listens on can bring it messages that are not for all.
//
// Messages on paired channels give no permits. They go to [Options].OnDirect, as long
// as the server can send them, until [Hub.Close] has returned. A server that
// refuses the paired channels costs their use, not the channel's:
// [Subscription.Paired] tells which it is. [Hub.Resume] is for who would use
// them now or not at all.
//
// # The life of a channel
//
//	Subscribe        Route          SUBSCRIBE        reply
//	---------> routing ----> wanted ---------> asking -----> confirmed
//	              ^                              |            |     |
//	              +------ refused, MOVED --------+            |     | nobody left
//	              +------ connection lost, slot moved --------+     | for Linger
//	                                                                v
//	           wanted <--- somebody came meanwhile --- reply --- leaving
//	          dropped <--- nobody came ---------------/         (UNSUBSCRIBE)
//
// A channel that is refused with its paired channels goes back from asking to wanted
// once, and is asked for by itself.
//
// The hooks of rueidis run on the reader of the connection. They only move a
// channel between these phases and hand out permits, under a mutex that nobody
// holds during I/O, and call OnDirect without it.
package pubsub
