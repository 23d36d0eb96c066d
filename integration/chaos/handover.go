package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"holdfast/rlock"
)

// HandOver is how the processes of a run hand locks over. Each has its own mode, and may meet
// others.
type HandOver string

// The ways to hand over. Mixed has processes of different modes in one run, at least one of them
// HandOverAnywhere.
const (
	ToAll HandOver = "all"
	Local HandOver = "local"
	None  HandOver = "none"
	Mixed HandOver = "mixed"
)

// HandOvers are all of them.
var HandOvers = []HandOver{ToAll, Mixed, Local, None}

// HandOverNamed returns the one of that name.
func HandOverNamed(name string) (HandOver, error) {
	if h := HandOver(name); slices.Contains(HandOvers, h) {
		return h, nil
	}
	return "", fmt.Errorf("no hand-over %q: want one of %q", name, HandOvers)
}

// DrawnHandOver returns the hand-over of a scenario with the given seed. Neighbouring scenarios
// differ, so that each hand-over occurs in any four of them, and in one scenario with enough seeds.
func DrawnHandOver(s *Scenario, seed uint64) HandOver {
	i := slices.IndexFunc(Scenarios, func(other Scenario) bool { return other.Name == s.Name })
	return HandOvers[(seed+uint64(max(i, 0)))%uint64(len(HandOvers))]
}

// modes returns the modes of that many processes, drawn by the seed if they differ.
func (h HandOver) modes(seed uint64, processes int) []rlock.HandOver {
	all := []rlock.HandOver{
		rlock.HandOverAnywhere, rlock.HandOverAnywhere, rlock.HandOverLocal, rlock.HandOverNone}
	switch h {
	case Local:
		all = []rlock.HandOver{rlock.HandOverLocal}
	case None:
		all = []rlock.HandOver{rlock.HandOverNone}
	case Mixed:
		// Not the dice of the run: the faults that a seed draws must not depend on the hand-over.
		dice := rand.New(rand.NewPCG(seed, 1))
		dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	default:
		all = all[:1]
	}
	modes := make([]rlock.HandOver, processes)
	for i := range modes {
		modes[i] = all[i%len(all)]
	}
	return modes
}

// describe lists modes in the order of the processes.
func describe(modes []rlock.HandOver) string {
	names := make([]string, len(modes))
	for i, mode := range modes {
		names[i] = map[rlock.HandOver]string{rlock.HandOverAnywhere: "all",
			rlock.HandOverLocal: "local", rlock.HandOverNone: "none"}[mode]
	}
	return strings.Join(names, ", ")
}
