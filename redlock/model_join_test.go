package redlock_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// onThree returns a model with three nodes and the clients A and B. A asks all nodes, and holds the
// lock on 0 and 1; its request to node 2 is still on its way.
func onThree(t *testing.T, p protocol) (w *world, a, b *modelClient) {
	t.Helper()
	right := clock{rate: 1_000_000}
	a, b = &modelClient{name: "A", clock: right}, &modelClient{name: "B", clock: right}
	w = &world{protocol: &p, now: modelStart, clients: []*modelClient{a, b}}
	for range 3 {
		w.nodes = append(w.nodes, &modelNode{clock: right})
	}
	w.begin(a, modelMaxLease, 0, 1, 2)
	w.answer(a, 0, 1)
	require.True(t, w.believes(a.acquisition))
	return w, a, b
}

// answer has the nodes execute the client's last requests, and the client get the replies.
func (w *world) answer(c *modelClient, nodes ...int) {
	for _, i := range nodes {
		r := w.last(c, i)
		w.carryOut(r)
		w.receive(r)
		w.decide(r.from)
	}
}

// last returns the last request of the client to a node.
func (w *world) last(c *modelClient, node int) *request {
	for _, r := range slices.Backward(w.requests) {
		if r.from.client == c && r.node == node {
			return r
		}
	}
	return nil
}

// The client cannot know when a release of a part that it gave up is executed. If it asks again
// under the same name, its own release may take the new part away.
func TestPartThatJoinsUnderItsFormerNameIsReleasedByALateCommand(t *testing.T) {
	t.Parallel()
	play := func(p protocol) string {
		w, a, b := onThree(t, p)
		w.giveUpOn(w.last(a, 2))
		release := w.last(a, 2)
		w.join(a.acquisition)
		w.answer(a, 2)
		// Nodes 0 and 2 are renewed, but not node 1: A has a quorum as long as it has both.
		w.now += 1_000_000
		w.renew(a.acquisition, []int{0, 2})
		w.answer(a, 0, 2)
		w.now = modelStart + modelMaxLease*1000
		w.carryOut(release)
		w.begin(b, modelMaxLease, 1, 2)
		w.answer(b, 1, 2)
		return w.violation()
	}
	require.Empty(t, play(protocol{}))
	require.Equal(t, "A and B hold it at a time", play(protocol{sameName: true}))
}

// A process that was stopped may see the reply to an old request before it notices the deadlines
// that passed meanwhile. The new part must not make up for those that ended: another has held the
// lock.
func TestPartThatJoinsDoesNotReviveAnExpiredHold(t *testing.T) {
	t.Parallel()
	play := func(p protocol) string {
		w, a, b := onThree(t, p)
		w.now += 1_000_000
		w.renew(a.acquisition, []int{0})
		w.answer(a, 0)
		w.giveUpOn(w.last(a, 2))
		w.join(a.acquisition)
		question := w.last(a, 2)
		// The lease on node 1 ends. A is stopped and does not notice.
		w.now = modelStart + modelMaxLease*1000
		w.begin(b, modelMaxLease, 1, 2)
		w.answer(b, 1, 2)
		require.True(t, w.believes(b.acquisition))
		require.Empty(t, w.violation())
		w.end(b.acquisition)
		w.carryOut(w.last(b, 2))
		// Now the late reply comes, and A resumes.
		w.carryOut(question)
		w.receive(question)
		return w.violation()
	}
	require.Empty(t, play(protocol{}))
	require.Equal(t, "A holds it as if nobody had had it meanwhile",
		play(protocol{joinsLate: true}))
}
