// Package suite has the promises of the locks, each once. A subject is a file, and a promise is an
// entry of the list in that file. Each promise is tested with every kind of lock that keeps it
// (kinds.go), in worlds where locks live (world.go, systems.go). The packages of the locks run the
// suite in virtual time and on a real Redis. The module integration runs it on a Redis Cluster and
// through a Sentinel, at night.
//
// To run all promises of a subject:
//
//	go test ./rlock -run TestPromises/unlock
//	go test -tags redis ./rlock -run TestPromisesOnRedis/unlock
//
// To run one promise with one kind of lock, add the promise without spaces, and the kind:
//
//	go test ./rlock -run 'TestPromises/unlock/NobodyUnlocksWhatAnotherOwnerHolds/^plain$'
package suite

import (
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A Promise is something that locks of several kinds keep in every world.
type Promise struct {
	// Name is the promise, as a claim in words.
	Name string
	// Kept says which kinds keep it; nil means all.
	Kept func(Kind) bool
	// Exact is set if the proof needs virtual time, because it waits for long, or compares times to
	// the nanosecond.
	Exact bool
	// Test is the proof. It is one of many that use the servers of e, under names of its own.
	Test func(t *testing.T, e *Env, k Kind)
}

// A subject is a file of promises.
type subject struct {
	name     string
	promises []Promise
}

// subjects has all files of promises.
var subjects = []subject{
	{"exclusion", exclusion},
	{"reentry", reentry},
	{"sameowner", sameOwner},
	{"unlock", unlock},
	{"do", do},
	{"context", contexts},
	{"grace", grace},
	{"loss", loss},
	{"hold", hold},
	{"detach", detach},
	{"atleast", atLeast},
	{"restart", restart},
	{"foreign", foreign},
	{"waiting", waiting},
	{"queue", queue},
	{"cancel", cancel},
	{"close", closing},
	{"names", names},
	{"connections", connections},
	{"deadline", deadline},
	{"watchdog", renewal},
	{"extend", extend},
	{"hang", hang},
	{"rejection", rejection},
	{"outcome", outcome},
	{"arguments", arguments},
	{"errors", errorsOf},
	{"tracer", tracer},
	{"inspect", inspection},
	{"readwrite", readWrite},
	{"fair", fairness},
	{"fenced", fencing},
	{"deadlock", deadlock},
	{"dropped", dropped},
	{"handover", handover},
	{"turns", turns},
}

// atOnce is how many proofs run at once. Most of them wait, so there are more than -parallel.
const atOnce = 16

// Run tests all promises of these kinds of locks in a world.
func Run(t *testing.T, w World, kinds ...Kind) {
	if w.Start == nil {
		w.Start = w.reusing(t)
	}
	turns := make(chan struct{}, atOnce)
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, p := range s.promises {
				if p.Exact && !w.Virtual {
					continue
				}
				t.Run(identifier(p.Name), func(t *testing.T) {
					t.Parallel()
					var proofs sync.WaitGroup
					for _, k := range kinds {
						if p.Kept == nil || p.Kept(k) {
							proofs.Go(func() {
								turns <- struct{}{}
								defer func() { <-turns }()
								w.run(t, k, p.Test)
							})
						}
					}
					proofs.Wait()
				})
			}
		})
	}
}

// identifier returns a claim in words as a name for go test -run.
func identifier(claim string) string {
	var name strings.Builder
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	for word := range strings.FieldsFuncSeq(claim, between) {
		first, size := utf8.DecodeRuneInString(word)
		name.WriteRune(unicode.ToUpper(first))
		name.WriteString(word[size:])
	}
	return name.String()
}
