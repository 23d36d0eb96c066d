package history

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInconsistentEventsAreAnError(t *testing.T) {
	hold := held("a", 1, plain, 0, 1, 2, 3)
	killed := Event{What: Killed, Process: "a"}
	for message, events := range map[string][]Event{
		"no events":                       nil,
		"was asked for twice":             {hold[0], hold[0]},
		"a#1: granted, but it was never":  {hold[1]},
		"released, but it was never":      {did(-1, "a", 1, Released), hold[0]},
		"granted after granted":           {hold[0], hold[1], hold[1]},
		"valid without a hold":            {hold[0], hold[2]},
		"releasing without a hold":        {hold[0], did(1, "a", 1, Refused), hold[3]},
		"released, but Unlock was not":    {hold[0], hold[1], hold[4]},
		"notheld, but Unlock was not":     append(slices.Clone(hold), did(5, "a", 1, NotHeld)),
		`fault "cut" begins twice`:        {fault("cut", 1, 2)[0], fault("cut", 1, 2)[0]},
		`fault "cut" is healed and was n`: {fault("cut", 1, 2)[1]},
		"a was killed twice":              {killed, killed},
		`unknown event "nonsense"`:        {{What: "nonsense"}},
		"asks for no lock":                {{What: Asked, Process: "a", Number: 1}},
	} {
		_, err := New(events)
		require.ErrorContains(t, err, message)
		require.ErrorContains(t, err, "history: ")
	}
}

func TestEventsMayComeInAnyOrder(t *testing.T) {
	hold := held("a", 1, plain, 5, 6, 7, 8)
	slices.Reverse(hold[:2])
	hold[0], hold[4] = hold[4], hold[0]
	h, err := New(hold)
	require.NoError(t, err)
	require.Equal(t, at(5), h.Start)
	require.Equal(t, at(8), h.End)
	require.Equal(t, Released, h.Acquisitions[0].Release)
	require.Equal(t, at(7), h.Acquisitions[0].Trusted)
}

func TestHistoryIsReadAsItWasWritten(t *testing.T) {
	failed := answered(plain, 5000, Failed, "time-out")
	failed[0].Number, failed[1].Number, failed[0].Root = 2, 2, 1
	h := story(t, withToken(7, held("a", 1, fenced, 0, 1, 2, 3)), fault("flush", 4, 5, "a", "b"),
		queue(4, 5, "a", "b"), failed, freeAt(6000),
		[]Event{{At: at(6001), What: Killed, Process: "b"}})
	var file bytes.Buffer
	require.NoError(t, h.Encode(&file))
	events, err := Decode(&file)
	require.NoError(t, err)
	require.Equal(t, h.Events, events)

	events, err = Decode(strings.NewReader("{\"at\":1}\nnonsense\n"))
	require.ErrorContains(t, err, "line 2")
	require.Len(t, events, 1)
	require.Error(t, h.Encode(full{}))
}

// full is a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestPeriodLastsUntilItIsHealedOrTheEnd(t *testing.T) {
	h := story(t, fault("cut", 1, 5, "a"), fault("flush", 2, 3)[:1], []Event{
		{At: at(1), What: Stopped, Process: "a"}, {At: at(2), What: Stopped, Process: "a"},
		{At: at(3), What: Resumed, Process: "a"},
		{At: at(4), What: Stopped, Process: "b"}, {At: at(5), What: Killed, Process: "b"},
		{At: at(6), What: Resumed, Process: "b"},
		{At: at(7), What: Resumed, Process: "c"}, {At: at(9), What: Queue, Until: at(20)},
	})
	require.Equal(t, []Period{
		{Fault: "cut", Processes: []string{"a"}, From: at(1), To: at(5)},
		{Fault: "stopped", Processes: []string{"a"}, From: at(1), To: at(3)},
		{Fault: "flush", Forgets: true, From: at(2), To: at(20)},
		{Fault: "stopped", Processes: []string{"b"}, From: at(4), To: at(5)},
		{Fault: "killed", Processes: []string{"b"}, From: at(5), To: at(20)},
	}, h.Faults)
	require.Equal(t, map[string]Instant{"b": at(5)}, h.Killed)
}
