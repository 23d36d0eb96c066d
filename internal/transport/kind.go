package transport

// Kind says whose capacity a command uses. Acquisitions cannot use up that of commands for what is
// held: a lock must not be lost because others are hard to get. Nor because others are hard to
// release: while one of rueidis's connections gives no reply, workers keep their places for it.
type Kind uint8

// The kinds of commands.
const (
	Acquire Kind = iota // it acquires a lock, or inspects one; it may be sent again
	Renew               // the watchdog renews what is held; it may be sent again
	Keep                // it extends what is held; it may be sent again
	Release             // it releases what is held, with the capacity of Keep
	Apart               // it has a connection of its own, perhaps for long
	undo                // it removes what an earlier command has left
	kinds
)

// resendable reports whether a command whose connection was lost may be sent again at once. A
// release may not: the second reply could say that nothing was held, or that another waiter got the
// lock.
func (k Kind) resendable() bool { return k == Acquire || k == Renew || k == Keep }

// These limit how many commands workers have under way at a time, by kind. With the most of callers
// they are 992. A worker keeps its place after its caller has left, for as long as rueidis waits
// for a reply.
const mostAcquiring, mostRenewing, mostKeeping, mostUndoing, mostApart = 240, 96, 144, 64, 384

// newPlaces returns the free places for commands of workers, by kind.
func newPlaces() (places [kinds]chan struct{}) {
	for kind, most := range map[Kind]int{
		Acquire: mostAcquiring, Renew: mostRenewing, Keep: mostKeeping, Apart: mostApart,
		undo: mostUndoing,
	} {
		places[kind] = make(chan struct{}, most)
		for range most {
			places[kind] <- struct{}{}
		}
	}
	places[Release] = places[Keep]
	return places
}

// freePlace gives up the place of a command.
func (c *Calls) freePlace(kind Kind) {
	if places := c.places[kind]; places != nil {
		places <- struct{}{}
	}
}
