package watchdog

// deadlines is the heap of the watched leases, the one with the earliest deadline at index 0. Each
// lease knows its index and is removed at once. A process may lock and unlock a hundred thousand
// times a second, so entries that stayed until their deadline would fill most of the heap.
type deadlines []*Lease

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].until() < d[j].until() }

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

func (d *deadlines) Push(x any) {
	l := x.(*Lease)
	l.index = len(*d)
	*d = append(*d, l)
}

func (d *deadlines) Pop() any {
	last := len(*d) - 1
	l := (*d)[last]
	(*d)[last] = nil // else the array would keep it alive
	*d = (*d)[:last]
	return l
}
