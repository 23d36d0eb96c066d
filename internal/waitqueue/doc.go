// Package waitqueue provides local queues of callers that wait for a lock in this process. The
// package also hands a lock over from its holder to a waiter. It knows neither Redis nor kinds of
// locks.
//
// Only the head of a queue asks the server, because the others would get the same reply. The queue
// keeps the reply, so a new head need not ask again.
//
// A request is refused if the reply says that another owner holds the lock. A request is rejected
// if the server returns an error.
//
// # States
//
// A [Waiter] has one [State]. The table of all transitions is in states.go.
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
// A release hands the lock over if the same command gives the lock to a waiter. The lock is never
// free in between, and the waiter need not ask for the lock.
//
//   - Within a process, the release names the head of the local queue as its successor ([Offer]).
//     The reply to the release is the acquisition.
//   - In a local turn, a release passes the lock on to the head without a command, and the server
//     does not learn of it ([Queues.Pass]).
//   - Between processes, the head of each local queue is registered on the server. A release grants
//     the lock to the oldest registration. A [Message] to the client of that registration is the
//     acquisition.
//
// # Why that is safe
//
// Each acquisition has its own name of the owner, or in a local turn the name of the acquisition
// before. Whatever gives the lock to that name makes the name the only owner. A waiter that did not
// ask for the lock must not trust the lease for longer than the server keeps it:
//
//   - A successor learns of its lock from the reply to the release. The successor counts its lease
//     from before that command was sent.
//   - The server grants a registration once, and never uses its ticket again. A waiter trusts a
//     message only if the message has the ticket of the latest registration. A refused request of
//     the waiter, or a release that named the waiter, made that registration. The grant and the
//     lease began after that command was sent. This holds for one server. If a master was replaced
//     without noticing, the old and the new master may each grant a lock, as both may do when they
//     are asked.
//   - A waiter ignores a message with an older ticket. A message with a newer or an unknown ticket
//     is a reason to ask, because the reply with that ticket did not arrive. Neither message grants
//     the lock.
//   - A waiter that takes a turn has nothing on the server under its own name. The holder before it
//     has no command under way under the name that both use.
//
// No lock may stay with a caller that has left:
//
//   - A waiter that leaves may be registered, or may have the lock. Both are given up in the
//     background (see [Waiter.Leave]). If a release that names the waiter is under way, the cleanup
//     waits for the outcome, because the release may be retried until then (see [Offer.Settle]).
//   - A holder whose earlier request may still be executed names no successor. That request could
//     take the lock again. The release would then give the lock to a successor whose hold is over
//     by then.
//   - A waiter that leaves may have been given a turn. [Waiter.UnusedTurn] reports the turn, and
//     the client releases the lock. [Waiter.Turn] keeps a turn from coming between the decision to
//     ask and the request.
//   - A message may arrive for an owner that neither waits nor holds, because the server executed
//     the registering request late. The client then releases the lock.
//   - A client that is gone receives no message. The server reports that to the release, which
//     tries the next registration. A client that is connected but stopped has the lock for its
//     lease. In watchdog mode that lease is short until the first renewal.
package waitqueue
