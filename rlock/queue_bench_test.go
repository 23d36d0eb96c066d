package rlock

import (
	"context"
	"strconv"
	"testing"
	"time"

	"holdfast/internal/owner"
	"holdfast/lua"
)

// What passes no server: the local queue, the seats, and the way in which a command is sent.

func BenchmarkJoinAndLeave(b *testing.B) {
	for _, behind := range []int{0, 1000} {
		b.Run("behind "+strconv.Itoa(behind), func(b *testing.B) {
			ls := newLines(&wire{})
			to := call{line: lineName{"lock", "order"}}
			for range behind {
				ls.join(to, heir{}, false)
			}
			b.ReportAllocs()
			for b.Loop() {
				ls.join(to, heir{owner: "client:1", lease: time.Second}, false).leave(false)
			}
		})
	}
}

// One hand-over within a process: the release is offered to the head of the line, and settled, and the heir leaves with it.
func BenchmarkOfferAndSettle(b *testing.B) {
	for _, places := range []bool{false, true} {
		b.Run("places "+strconv.FormatBool(places), func(b *testing.B) {
			ls := newLines(&wire{})
			to := call{line: lineName{"lock", "order"}, places: places}
			ls.join(to, heir{owner: "client:0", lease: time.Second}, false)
			b.ReportAllocs()
			for b.Loop() {
				ls.join(to, heir{owner: "client:1", lease: time.Second}, false)
				offered := ls.offer(to.line, journey{})
				offered.settle(time.Now(), lua.Released{Held: true, To: lua.Successor}, nil)
				<-offered.spot.gifts
				offered.spot.keep()
				offered.spot.leave(false)
			}
		})
	}
}

// A message from the server that says that a waiter was given the lock.
func BenchmarkGift(b *testing.B) {
	ls := newLines(&wire{})
	to := call{line: lineName{"lock", "order"}, places: true}
	s := ls.join(to, heir{owner: "client:1", lease: time.Second}, false)
	b.ReportAllocs()
	for b.Loop() {
		ls.mu.Lock()
		s.given = false
		s.enlist(7, time.Now())
		ls.mu.Unlock()
		ls.gift(lua.Grant{Lock: "order", Owner: "client:1", Ticket: 7})
		<-s.gifts
	}
}

func BenchmarkEnterAndLeave(b *testing.B) {
	for _, others := range []int{0, 10_000} {
		b.Run("beside "+strconv.Itoa(others), func(b *testing.B) {
			r := newRegistry()
			for range others {
				r.enter(place{"lock", "order", owner.New()})
			}
			b.Run("named", func(b *testing.B) {
				b.ReportAllocs()
				p := place{"lock", "order", owner.New()}
				for b.Loop() {
					r.enter(p).leave()
				}
			})
			b.Run("new", func(b *testing.B) {
				b.ReportAllocs()
				var s seat
				for b.Loop() {
					s = seat{}
					r.enterNew(&s, place{"lock", "order", owner.New()}).leave()
				}
			})
		})
	}
}

func BenchmarkBoardAndLand(b *testing.B) {
	f := newFlights(3*time.Second, false)
	f.land(time.Now(), nil)
	p := (&Client{closing: make(chan struct{})}).patience(context.Background(), unlimited)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			now := time.Now()
			if _, ok := f.board(p, now); !ok {
				b.Error("it has to go the other way")
				return
			}
			f.land(now, nil)
		}
	})
}
