package redlock_test

import (
	"testing"

	"pgregory.net/rapid"
)

// protocol is how clients and nodes behave. The zero value is what package redlock does by default;
// fsyncAlways and epoch are its options, and each other field leaves something out.
type protocol struct {
	fsyncAlways bool // nodes do not forget when they restart, and are not delayed
	epoch       bool // nodes that were emptied are delayed, and some are emptied

	noDelay    bool // a node that has restarted is counted at once
	noSecond   bool // the uptime of a node is taken as exact
	shortDelay bool // a client takes longer leases than the nodes are told
	emptied    bool // nodes are emptied, and nobody checks
	sameName   bool // a part is requested again under its former name
	noDrift    bool // a lease is trusted to its very end
	fromReply  bool // a lease is counted from when its grant arrives
	latest     bool // an acquisition is trusted until the last of its parts ends
	joinsLate  bool // parts may join an acquisition that has expired unnoticed
}

// delayed returns for how many milliseconds a node that may have forgotten something does not
// count.
func (p *protocol) delayed() int {
	if p.shortDelay {
		return modelMaxLease / 2
	}
	return modelMaxLease
}

const (
	// modelSteps is how long a run is.
	modelSteps = 80
	// modelSeed is where the search for counterexamples begins. From here all are found within a
	// few hundred runs; the rarest one is found in one of 2500 runs.
	modelSeed = 5476
)

// play plays a random run. It returns what went wrong and how, or "".
func play(t *rapid.T, p protocol) string {
	w := newWorld(t, &p)
	w.open(t)
	for range modelSteps {
		w.step(t)
		if wrong := w.violation(); wrong != "" {
			w.tell("%s", wrong)
			return w.told()
		}
	}
	return ""
}

// open gives the first client the lock on a quorum in half of the runs: most that can go wrong
// comes after that.
func (w *world) open(t *rapid.T) {
	if c := w.clients[0]; among(t, 2) > 0 {
		w.want(t, c)
		for _, r := range w.unanswered(false)[:w.quorum()] {
			w.exchange(t, r)
		}
	}
}

// step does anything that may happen next.
func (w *world) step(t *rapid.T) {
	c := w.clients[among(t, len(w.clients))]
	switch chosen := among(t, 64); {
	case chosen < 34 && w.transmit(t, c):
	case chosen < 55:
		w.act(t, c)
	case chosen < 56:
		i := among(t, len(w.nodes))
		w.nodes[i].restart(t, w.protocol, w.now)
		w.tell("node %d restarts with %+v", i, w.nodes[i].data)
	case chosen < 57 && (w.epoch || w.emptied):
		i := among(t, len(w.nodes))
		w.nodes[i].data = nodeData{}
		w.tell("node %d is emptied", i)
	default:
		w.pass(t)
	}
}

// transmit has messages arrive, or not. It returns false if there are none.
func (w *world) transmit(t *rapid.T, c *modelClient) bool {
	fresh, late, flying := w.unanswered(false), w.unanswered(true), w.underWay()
	switch chosen := among(t, 16); {
	case chosen < 6 && len(fresh) > 0: // the usual case: most get a reply at once
		for _, r := range fresh {
			if r.from == c.acquisition && among(t, 4) > 0 {
				w.exchange(t, r)
			}
		}
	case chosen < 9 && len(fresh) > 0:
		w.exchange(t, fresh[among(t, len(fresh))])
	case chosen < 11 && len(late) > 0:
		r := late[among(t, len(late))]
		w.receive(r)
		w.decide(r.from)
	case chosen < 12 && len(fresh)+len(late) > 0:
		w.giveUpOn(append(fresh, late...)[among(t, len(fresh)+len(late))])
	case len(flying) > 0:
		w.deliver(t, flying[among(t, len(flying))])
	default:
		return false
	}
	return true
}

// act does anything that a client may do next.
func (w *world) act(t *rapid.T, c *modelClient) {
	own := c.acquisition
	switch chosen := among(t, 16); {
	case own == nil || own.phase == ended:
		w.want(t, c)
	case chosen < 1:
		w.crash(c)
	case own.phase == wanting:
		if !own.asks() || chosen < 4 {
			w.end(own)
		}
	case chosen < 6:
		var parts []int // watchdogs renew each by itself
		for i := range w.nodes {
			if among(t, 3) > 0 {
				parts = append(parts, i)
			}
		}
		w.renew(own, parts)
	case chosen < 11:
		w.join(own)
	case chosen < 14:
		w.lapse(own)
	default:
		w.end(own)
	}
}

// want asks all nodes, except perhaps one that is known not to reply.
func (w *world) want(t *rapid.T, c *modelClient) {
	leases := []int64{
		modelMaxLease, modelMaxLease, modelMaxLease, modelMaxLease, modelMaxLease / 2, 30,
	}
	lease, silent := leases[among(t, len(leases))], among(t, 2*len(w.nodes))
	var nodes []int
	for i := range w.nodes {
		if i != silent {
			nodes = append(nodes, i)
		}
	}
	w.begin(c, lease, nodes...)
}

// exchange is a round trip.
func (w *world) exchange(t *rapid.T, r *request) {
	w.deliver(t, r)
	w.receive(r)
	w.decide(r.from)
}

// While a quorum of its parts can be trusted, no other client has one; and a client that holds the
// lock has held it without a gap. That holds whatever the nodes forget when they restart, however
// late commands come, and whether clients live or not.
func TestNoTwoClientsOfTheModelHoldTheLockAtATime(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]protocol{
		"by default":         {},
		"FsyncAlways":        {fsyncAlways: true},
		"Epoch":              {epoch: true},
		"FsyncAlways, Epoch": {fsyncAlways: true, epoch: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				if story := play(t, p); story != "" {
					t.Fatal(story)
				}
			})
		})
	}
}

// Without any one of these the model finds two holders: each is needed, and the model notices when
// one is wrong.
func TestModelFindsTwoHoldersWithout(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]protocol{
		"the delayed restart":                  {noDelay: true},
		"the second of the uptime":             {noSecond: true},
		"one MaxLease for all":                 {shortDelay: true},
		"the epoch when a node is emptied":     {emptied: true},
		"the drift":                            {noDrift: true},
		"counting from before the request":     {fromReply: true},
		"a quorum of parts up to the deadline": {latest: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := rapid.Custom(func(t *rapid.T) string { return play(t, p) })
			for i := range 50_000 {
				if story := run.Example(modelSeed + i); story != "" {
					t.Logf("run %d:\n%s", i, story)
					return
				}
			}
			t.Fatal("no counterexample")
		})
	}
}
