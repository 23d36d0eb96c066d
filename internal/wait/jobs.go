package wait

// jobs is a list of jobs in the order in which they came. Its links are in the jobs: it allocates
// nothing, and removes a job from the middle in one step. A job is in one list at a time. The zero
// value is empty.
type jobs struct {
	front, back *Job
}

func (l *jobs) push(j *Job) {
	j.prev = l.back
	if l.back == nil {
		l.front = j
	} else {
		l.back.next = j
	}
	l.back = j
}

// remove takes out j, which is in the list. j keeps no neighbour: the collector could not free what
// it points at while somebody keeps j.
func (l *jobs) remove(j *Job) {
	if j.prev == nil {
		l.front = j.next
	} else {
		j.prev.next = j.next
	}
	if j.next == nil {
		l.back = j.prev
	} else {
		j.next.prev = j.prev
	}
	j.prev, j.next = nil, nil
}
