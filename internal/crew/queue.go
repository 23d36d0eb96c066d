package crew

// queue is a list of calls in the order in which they came. Its links are in the calls, so that it allocates nothing and
// takes a call out of the middle in one step. A call is in one queue at a time. The zero value is empty.
type queue struct {
	front, back *Call
}

func (q *queue) push(c *Call) {
	c.prev = q.back
	if q.back == nil {
		q.front = c
	} else {
		q.back.next = c
	}
	q.back = c
}

// remove takes out c, which is in q. c keeps no neighbour: what it points at could not be collected while somebody
// keeps c.
func (q *queue) remove(c *Call) {
	if c.prev == nil {
		q.front = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		q.back = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
}
