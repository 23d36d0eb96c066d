package rlock

// NewNonReentrantFairLock returns the fair lock called name that an owner can hold only once: if
// the owner holds it already, an attempt returns [ErrReentry] at once, and does not join the queue.
// It is Redisson's non-reentrant fair lock. It shares its queue with [Client.NewFairLock], which
// says how the queue is served, and excludes the other locks under its name. For impossible names
// see [Client.NewLock].
func (c *Client) NewNonReentrantFairLock(name string) *Lock {
	return c.nonReentrantFairOf(c.options.mapped(name))
}

// nonReentrantFairOf returns the non-reentrant fair lock with a name in Redis. Its scripts are
// those of the fair lock, for the reasons of nonReentrantOf.
func (c *Client) nonReentrantFairOf(name string) *Lock {
	return c.newFair(name, "non-reentrant fair", errReentersFair)
}

var errReentersFair = reentryError("Client.NewFairLock")
