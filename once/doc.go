// Package once runs a function once for each key, even if several processes call it at the same
// time. Such a key is known as an idempotency key.
//
//	receipt, err := once.Do(ctx, client, "payment:"+id, 24*time.Hour,
//		func(ctx context.Context) (Receipt, error) { return charge(ctx, order) })
//
// The first caller runs the function under a lock and stores its result in Redis. Other callers
// with the same key wait and return the stored result, until the result expires. Package oncehttp
// does the same for HTTP requests with an Idempotency-Key.
//
// # What once promises
//
//   - Redis stores a single result for each key, and each call without an error returns that
//     result.
//   - Two runs of a key overlap only if the first run has lost its lock. The context of the first
//     run then ends, and its result is not stored.
//   - A run that fails stores nothing, and the next waiting caller runs its function.
//   - If the process of a run dies, one other caller runs its function after the lease
//     (rlock.Options.WatchdogLease).
//
// So the function runs once, and again after each run that fails, dies, loses its lock, or cannot
// store its result. No library can promise exactly one run if the function has an effect outside
// Redis, because a process can die between the effect and the storing of the result. Use [Token] to
// make a resource reject the late writes of an earlier run, or pass the key on to a service with
// idempotency keys of its own.
//
// All promises depend on Redis keeping its data. After a failover that loses the result, the
// function may run again, because storing a result does not wait for replicas, even with
// rlock.Options.SyncReplicas.
//
// # In Redis
//
// The lock of the key "k" has the name "once:k", and the record has the name
// "holdfast_once:{once:k}". The record is created when a run begins, and expires after the
// lifetime, whether or not the run succeeded, so a key leaves nothing behind. Delete the record to
// make the next caller run its function again.
package once
