// Package waitqueue has the local queues of those who wait for a lock in this process, and the
// hand-over of a lock from its holder to one of them. It knows neither Redis nor kinds of locks.
//
// Only the head of a queue asks the server; the others would be told the same. What the head learns
// stays with the queue, so a new head need not ask again.
//
// # States
//
// A [Waiter] has one [State]; states.go has all transitions.
//
//	            Ask                      Acquire
//	Waiting ──────────▶ Asking           Waiting, Offered, Granted ──▶ Acquired
//	   │    ◀──────────    │
//	   │       Answer      │             Leave
//	   │ Offer             │             Waiting, Granted ──▶ Left
//	   ▼        Ask        ▼ Settle      Offered ──▶ LeftOffered ──Settle──▶ Left
//	Offered ────────▶ OfferedAsking
//	        ◀────────                    Grant
//	          Answer                     Waiting ──▶ Granted ──Ask──▶ Asking
//
// Settle takes Offered back to Waiting and OfferedAsking to Asking.
//
// Beside that it has a [Registration]: what the server may know of it, a place among those who are
// given the lock by releases in other processes. When a waiter leaves, the two say what may remain
// on the server and must be cleaned up: see [Waiter.Leave] and [Offer.Settle].
//
// # Hand-over
//
// A release hands the lock over when it gives it to somebody who waits, by the same command: then
// the lock is never free in between, and the one who waited need not ask for it.
//
//   - Within a process the release names the head of the local queue as its successor ([Offer]),
//     and the answer to it is the acquisition.
//   - Between processes the head of each local queue is registered on the server, and a release in
//     another process grants the lock to the oldest registration: a [Message] to its client is the
//     acquisition.
//
// # Why that is safe
//
// The name of an owner belongs to one acquisition, and is only ever given the lock by a command
// that makes it the only owner. So at any time one owner has the lock on the server. What remains
// is that an owner must not trust its lease for longer than the server keeps it, though it did not
// ask:
//
//   - A successor learns of its lock from the answer to the release, and its lease began after that
//     was sent.
//   - A registration is granted once, and its ticket is never used again. A waiter believes a
//     message only if its last request was refused and answered with the same ticket. So the lock
//     was granted after that request was sent, and its lease began after that. That is so on one
//     server: two masters, of which one has been replaced without knowing it, may each grant a
//     lock, as they may when they are asked.
//   - Any other message (of a ticket that is not known, because the answer did not come) is a
//     reason to ask, and no lock.
//
// And no lock may stay with somebody who has left:
//
//   - A waiter that leaves, and may be registered or have the lock, has both given up in the
//     background. One that leaves while a release that names it is under way is cleaned up after
//     that has settled, since only then nothing repeats it.
//   - A message for somebody who neither waits nor holds, because the request that registered it
//     was executed late, is answered by giving the lock up.
//   - A client that is gone hears no message: the server says so to the release, which tries the
//     next one. One that is connected but stopped has the lock for its lease, which in watchdog
//     mode is a short one until its first renewal.
package waitqueue
