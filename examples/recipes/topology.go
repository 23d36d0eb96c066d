package recipes

import (
	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
)

// orderLock is a lock on one master, behind Sentinel, or on a cluster. rueidis decides which.
func orderLock(client *rlock.Client, order string) rlock.Locker {
	return client.NewLock("order:" + order)
}

// transferLock is a lock on both accounts. Transfers in opposite directions cannot deadlock.
func transferLock(client *rlock.Client, from, to string) rlock.Locker {
	return multilock.NewOn(client, "account:"+from, "account:"+to)
}

// closingLock is a lock on three masters, one of which may fail.
func closingLock(a, b, c *rlock.Client) rlock.Locker {
	return redlock.NewOn("closing", redlock.Options{}, a, b, c)
}
