// Package waitqueue provides local queues of callers that wait for a lock in this process, and the
// hand-over of a lock from its holder to one of them. It knows neither Redis nor kinds of locks.
//
// Only the head of a queue asks the server; the others would get the same reply. What the head
// learns stays with the queue, so a new head need not ask again.
//
// # States
//
// A [Waiter] has one [State]; states.go has the table of all transitions.
//
//	            ask                      acquire
//	Waiting ──────────▶ Asking           Waiting, Offered, Granted ──▶ Acquired
//	   │    ◀──────────    │
//	   │       reply       │             leave
//	   │ offer             │             Waiting, Granted ──▶ Left
//	   ▼        ask        ▼ settle      Offered ──▶ LeftOffered ──settle──▶ Left
//	Offered ────────▶ OfferedAsking
//	        ◀────────                    grant
//	          reply                      Waiting ──▶ Granted ──ask──▶ Asking
//
// settle takes Offered back to Waiting and OfferedAsking to Asking.
//
// # Hand-over
//
// A release hands the lock over when it gives the lock to a waiter by the same command. The lock is
// never free in between, and the waiter need not ask for it.
//
//   - Within a process the release names the head of the local queue as its successor ([Offer]),
//     and the reply to the release is the acquisition.
//   - Between processes the head of each local queue is registered on the server, and a release
//     grants the lock to the oldest registration: a [Message] to its client is the acquisition.
//
// # Why that is safe
//
// Each acquisition has an owner's name of its own, and what gives it the lock makes it the only
// owner. One that did not ask must not trust its lease for longer than the server keeps it:
//
//   - A successor learns of its lock from the reply to the release, and counts its lease from
//     before that command was sent.
//   - A registration is granted once, and its ticket is never used again. A waiter trusts a message
//     only if it has the ticket of its latest registration, made by a refused request or by a
//     release that named it: the lock was granted, and the lease began, after that command was
//     sent. This holds for one server: two masters, one of which was replaced without noticing, may
//     each grant a lock, as they may when they are asked.
//   - A message with an older ticket is ignored. One with a newer or unknown ticket, whose reply
//     did not arrive, is a reason to ask. Neither grants anything.
//
// No lock may stay with a caller that has left:
//
//   - When a waiter leaves that may be registered or may have the lock, both are given up in the
//     background: see [Waiter.Leave]. If a release that names it is under way, the cleanup waits
//     for its outcome, since the release may be retried until then: see [Offer.Settle].
//   - A holder whose earlier request may still be executed names no successor. That request could
//     take the lock again, and the release give it to a successor whose hold is over by then.
//   - A message may arrive for an owner that neither waits nor holds, because the request that
//     registered it was executed late. The lock is then released.
//   - A client that is gone hears no message: the server tells the release, which tries the next
//     one. A client that is connected but stopped has the lock for its lease, which in watchdog
//     mode is short until the first renewal.
package waitqueue
