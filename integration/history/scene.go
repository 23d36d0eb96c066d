package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// around is how much a picture shows before and after the first breach of a lock.
const around = time.Second

// scene is what happened to one lock near its first breach.
type scene struct {
	name     string
	from, to Instant
	// parts are in the order in which they were asked for. Those that a breach is about are always
	// among them.
	parts []part
}

// scenes returns one for each lock that was breached in the last Judge, the first breach first.
func (h *History) scenes() []scene {
	var scenes []scene
	names := h.names()
	for _, b := range h.breaches {
		for _, name := range b.names() {
			known := slices.IndexFunc(scenes, func(s scene) bool { return s.name == name })
			if known < 0 {
				known = len(scenes)
				scenes = append(scenes,
					scene{name: name, from: b.At.Add(-around), to: b.At.Add(around)})
				scenes[known].parts = slices.DeleteFunc(slices.Clone(names[name]),
					func(p part) bool {
						return !slices.Contains(b.Between, p.Acquisition) &&
							!h.near(p.Acquisition, scenes[known])
					})
			}
		}
	}
	return scenes
}

// names returns the locks that a breach is about: those that its acquisitions have in common.
func (b Breach) names() []string {
	if len(b.Between) == 0 {
		return nil
	}
	var names []string
	for _, lock := range b.Between[0].Locks {
		if !slices.ContainsFunc(b.Between, func(a *Acquisition) bool {
			return !slices.ContainsFunc(a.Locks, func(other Lock) bool {
				return other.Name == lock.Name
			})
		}) {
			names = append(names, lock.Name)
		}
	}
	return names
}

// near reports whether a may have mattered in a scene.
func (h *History) near(a *Acquisition, s scene) bool {
	to := a.Answered
	if a.Granted() || to == 0 {
		_, to, _ = h.mayHold(a, h.bounds)
	}
	return a.Asked <= s.to && to >= s.from
}

// piece returns the scene as operations. They have the recorded times, not the inferred ones. The
// end of the scene cuts them off.
func (s scene) piece(m *memory) piece {
	p := piece{name: s.name, open: true, before: state{anyToken: true}} // the token is unknown
	for _, o := range m.operations(m.windows(s.parts)) {
		if o.Input.(step).verb == forget && (Instant(o.Call) > s.to || Instant(o.Return) < s.from) {
			continue
		}
		p.operations = append(p.operations, o)
	}
	for _, one := range s.parts {
		if !one.Granted() {
			until := one.Answered
			if until == 0 {
				until = max(s.to, one.Asked)
			}
			p.operations = append(p.operations,
				porcupine.Operation{Input: step{verb: call, part: one}, Call: int64(one.Asked),
					Return: int64(until)})
		}
	}
	for i := range p.operations {
		o := &p.operations[i]
		o.Return = max(o.Call, min(o.Return, int64(s.to)))
	}
	slices.SortStableFunc(p.operations, func(a, b porcupine.Operation) int {
		return cmp.Compare(a.Call, b.Call)
	})
	return p
}

// holds returns annotations of the times in which each hold is known to have been trusted. No two
// overlap on a line.
func (h *History) holds(scenes []scene) []porcupine.Annotation {
	drawn := map[*Acquisition]bool{}
	ends := map[string][]Instant{} // ends of the last hold on each line, by process
	var holds []porcupine.Annotation
	for _, s := range scenes {
		for _, p := range granted(s.parts) {
			if drawn[p.Acquisition] { // already, in the scene of another lock
				continue
			}
			drawn[p.Acquisition] = true
			line := slices.IndexFunc(ends[p.Process], func(end Instant) bool {
				return end < p.Answered
			})
			if line < 0 {
				line = len(ends[p.Process])
				ends[p.Process] = append(ends[p.Process], 0)
			}
			ends[p.Process][line] = p.Trusted
			tag := fmt.Sprintf("holds of %s (%d)", p.Process, line+1)
			details := fmt.Sprintf("lease %v, then %s %s", p.Lease,
				cmp.Or(p.Release, "never released"), p.Error)
			holds = append(holds, porcupine.Annotation{
				Tag:         strings.TrimSuffix(tag, " (1)"),
				Start:       int64(p.Answered - h.Start),
				End:         int64(p.Trusted - h.Start),
				Description: p.String() + ": valid",
				Details:     strings.TrimSuffix(details, " "),
			})
		}
	}
	return holds
}

// marks returns annotations of the times of the scenes' breaches.
func (h *History) marks(scenes []scene) []porcupine.Annotation {
	var marks []porcupine.Annotation
	for _, b := range h.breaches {
		if slices.ContainsFunc(scenes, func(s scene) bool {
			return slices.Contains(b.names(), s.name) && b.At <= s.to
		}) {
			marks = append(marks, porcupine.Annotation{
				Tag: "breaches", Start: int64(b.At - h.Start), End: int64(b.At - h.Start),
				Description: b.String(), BackgroundColor: "#ff5555",
			})
		}
	}
	return marks
}
