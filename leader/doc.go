// Package leader elects one of several processes, which then does the work of all.
//
//	lock := client.NewLock("billing")
//	err := leader.Run(ctx, lock, leader.Options{Grace: 10 * time.Second},
//		func(ctx context.Context) error {
//			return bill(ctx) // until ctx ends
//		})
//
// Run it in every process. One process gets the lock and leads, and the others wait. The next
// leader begins
//   - at once, if the leader ends because of its context, or its work returns;
//   - when the lease ends, if the leader dies. This takes up to rlock.Options.WatchdogLease, which
//     is 30 s by default;
//   - when the lease ends, if the leader cannot reach Redis. Its context ends before that.
//
// Two leaders never work at the same time, as far as a lock on Redis can promise that, and provided
// that the work returns when its context ends. If a late write does harm, use a fenced lock, and
// send its token with each write. A RedLock survives the loss of a server, and a fair lock makes
// the process lead that has waited longest.
//
// Tools show who leads. "holdfast ls" prints the leader as "billing-7 on web-1 (pid 4711)". The
// first word is rlock.Options.Label of the client, which you can set to the name of the pod, or
// else the program. "holdfast inspect billing" prints all of this.
package leader
