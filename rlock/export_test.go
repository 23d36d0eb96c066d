package rlock

// Waiting is how many goroutines of this client stand in line for the lock.
func Waiting(l *Lock) int {
	ls := l.client.lines
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if q := ls.byName[l.kind.call("").line]; q != nil {
		return q.waiting.Len()
	}
	return 0
}

// Seats is how many seats of a client are in use: by holds, acquisitions under way and clean-ups.
func Seats(c *Client) int {
	c.seats.mu.Lock()
	defer c.seats.mu.Unlock()
	return len(c.seats.seats)
}
