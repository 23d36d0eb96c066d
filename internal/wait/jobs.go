package wait

// jobs is a first-in, first-out list whose links are in the jobs. It allocates nothing, and removes
// a job from the middle in constant time. A job is in one list at a time. The zero value is empty.
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

// remove removes j, which must be in the list, and clears its links, so that a job that is kept
// does not keep its neighbours from being collected.
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
