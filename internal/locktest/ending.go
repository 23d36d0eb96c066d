package locktest

import (
	"runtime"
	"testing"
)

// Ends has the ways in which foreign code ends the goroutine that calls it.
var Ends = map[string]func(){
	"panic":  func() { panic("panic") },
	"Goexit": runtime.Goexit,
}

// EndOf calls f in a goroutine and returns how f ended: "returned", or the name in Ends.
func EndOf(t testing.TB, f func()) (how string) {
	t.Helper()
	ended := make(chan string, 1)
	go func() {
		how := "Goexit"
		defer func() {
			if value, panicked := recover().(string); panicked {
				how = value
			}
			ended <- how
		}()
		f()
		how = "returned"
	}()
	return Receive(t, ended, "it has not ended")
}
