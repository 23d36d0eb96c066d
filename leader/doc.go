// Package leader elects one of several processes as the leader. Only the leader works, and the
// others wait to take over.
//
//	lock := client.NewLock("billing")
//	err := leader.Run(ctx, lock, leader.Options{Grace: 10 * time.Second},
//		func(ctx context.Context) error {
//			return bill(ctx) // until ctx ends
//		})
//
// Call [Run] in every process. One process gets the lock and leads. The next leader begins
//   - at once, if the leader ends because of its context, or its work returns,
//   - when the lease ends, if the leader dies. This takes up to rlock.Options.WatchdogLease, 30 s
//     by default,
//   - when the lease ends, if the leader cannot reach Redis. The context of the work ends before
//     that,
//   - at once, if somebody deletes or force-unlocks the lock. The former leader learns that from
//     its next renewal, up to a third of rlock.Options.WatchdogLease later.
//
// Except in the last case, two leaders never work at the same time, within the limits of a lock on
// Redis, and provided that the work returns when its context ends. If a late write would do harm,
// use a fenced lock, and send its token with each write. With a RedLock, the election survives the
// loss of a server. With a fair lock, the process that has waited longest leads next.
//
// Use "holdfast ls" to see who leads. It prints the leader as "billing-7 on web-1 (pid 4711)". The
// first word is rlock.Options.Label of the client, or the name of the program without a label. Set
// the label to the name of the pod, for example. "holdfast inspect billing" prints the details.
package leader
