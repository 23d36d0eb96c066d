package history

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

func draw(t *testing.T, events ...[]Event) string {
	t.Helper()
	h := story(t, events...)
	h.Judge(bounds)
	var page bytes.Buffer
	require.NoError(t, h.Picture(&page))
	return page.String()
}

// inPage returns the text as it is written in the data of the page.
func inPage(t *testing.T, text string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	return string(quoted)
}

func TestPictureShowsEachOperationStateAndFault(t *testing.T) {
	page := draw(t, held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 23, 30, 31),
		fault("cut", 12, 14, "a", "b", "d"),
		fault("flush", 24, 25), fault("cut", 500, 501),
		withToken(7, held("c", 1, Lock{"number", Fenced}, 0, 10, 20, 21)),
		append(held("d", 1, Lock{"book", Read}, 0, 10, 20, 21)[:4], did(22, "d", 1, Unconfirmed)),
		[]Event{{At: at(600), What: Free, Name: "book"}})
	require.Contains(t, page, "<html")
	for _, text := range []string{
		`a#1 plain "lock": acquired`, `a#1 plain "lock": ends (released)`,
		`b#1 plain "lock": acquired`, `b#1 plain "lock": ends (released)`,
		`c#1 fenced "number": acquired with token 7`,
		`d#1 read "book": acquired`, `d#1 read "book": ends (lost, unconfirmed)`,
		`"lock" is free`, `held by a#1 (1)`, `free`, `the servers may forget the token`,
		`cut [a b d]`, `flush`, `the servers may forget`,
	} {
		require.Contains(t, page, inPage(t, text))
	}
}

func TestPictureShowsAllThatHappenedNearABreachOfALock(t *testing.T) {
	a, b := held("a", 1, plain, 0, 10, 9020, 9021), held("b", 1, plain, 15, 9010, 9030, 9031)
	waiter := []Event{waitingFor(100*ms, asked(9005, "c", 1, plain)), did(9105, "c", 1, Refused)}
	refused := func(number, from, to int) []Event {
		return []Event{waitingFor(0, asked(from, "d", number, plain)),
			did(to, "d", number, Refused)}
	}
	page := draw(t, a, b, waiter, refused(1, 8000, 8009), refused(2, 8000, 8010),
		held("d", 3, Lock{"elsewhere", Plain}, 8100, 8101, 8500, 8501),
		held("d", 4, plain, 10_011, 10_012, 10_013, 10_014),
		fault("cut", 8600, 8700, "a"), fault("long ago", 20, 30), fault("too late", 20_000, 20_001),
		freeAt(20_000))
	for _, text := range []string{
		`"lock": what is drawn begins`, `a#1 plain "lock": acquired`,
		`a#1 plain "lock": ends (released)`, `b#1 plain "lock": acquired`,
		`c#1 plain "lock": refused`, `d#2 plain "lock": refused`, `cut [a]`, `holds of a`,
		`a#1 plain "lock": valid`,
		`exclusion: "lock": a#1 plain "lock" and b#1 plain "lock" are both valid for at least 10ms`,
	} {
		require.Contains(t, page, inPage(t, text))
	}
	for _, text := range []string{"elsewhere", "d#1", "d#4", "too late"} {
		require.NotContains(t, page, text)
	}
}

func TestPictureHasTheTimesThatWereRecorded(t *testing.T) {
	h := story(t, held("a", 1, plain, 1, 20, 30, 41), held("b", 1, plain, 0, 25, 50, 51),
		[]Event{asked(26, "c", 1, plain)},
		[]Event{asked(51, "d", 1, plain), did(52, "d", 1, Granted)}, freeAt(9000))
	h.Judge(bounds)
	scenes := h.scenes()
	require.Len(t, scenes, 1)
	times := map[string][2]int64{}
	for _, o := range scenes[0].piece(h.memory(bounds)).operations {
		times[o.Input.(step).String()] = [2]int64{o.Call / int64(ms), o.Return / int64(ms)}
	}
	require.Equal(t, map[string][2]int64{
		`a#1 plain "lock": acquired`:        {1, 20},
		`a#1 plain "lock": ends (released)`: {30, 41},
		`b#1 plain "lock": acquired`:        {0, 25},
		`b#1 plain "lock": ends (released)`: {50, 51},
		`c#1 plain "lock": no answer`:       {26, 1025},
		// where the scene ends
		`d#1 plain "lock": acquired`: {51, 52}, `d#1 plain "lock": ends (lost)`: {52, 1025},
	}, times)
}

func TestBreachIsDrawnWithTheLocksThatAllItsPartsShare(t *testing.T) {
	one := &Acquisition{Locks: []Lock{{"x", Plain}, {"y", Plain}}}
	other := &Acquisition{Locks: []Lock{{"y", Plain}, {"z", Plain}}}
	require.Equal(t, []string{"y"}, Breach{Between: []*Acquisition{one, other}}.names())
	require.Equal(t, []string{"x", "y"}, Breach{Between: []*Acquisition{one}}.names())
	require.Empty(t, Breach{}.names())
}

func TestOperationsOnOneLineOfThePictureDoNotOverlap(t *testing.T) {
	h := story(t, held("a", 1, plain, 0, 10, 20, 21), held("a", 2, plain, 0, 30, 40, 41),
		held("b", 1, plain, 0, 50, 60, 61))
	p := joined(h.pieces(bounds)["lock"], 100)
	lines := map[int]int64{}
	operations := p.drawn(h.Start)
	lanes([][]porcupine.Operation{operations})
	for _, o := range operations {
		if last, used := lines[o.ClientId]; used {
			require.Greater(t, o.Call, last)
		}
		lines[o.ClientId] = o.Return
	}
	require.Greater(t, len(lines), 2)
}

func TestPictureThatCannotBeWrittenIsAnError(t *testing.T) {
	require.ErrorContains(t, story(t, held("a", 1, plain, 0, 10, 20, 21)).Picture(full{}),
		"no space left")
}
