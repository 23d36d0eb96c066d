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

// inPage is the text as it is written in the data of the page.
func inPage(t *testing.T, text string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	return string(quoted)
}

func TestThePictureShowsEachOperationStateAndFault(t *testing.T) {
	page := draw(t, held("a", 1, plain, 0, 10, 20, 21), held("b", 1, plain, 15, 23, 30, 31), fault("cut", 12, 14, "a", "b"),
		fault("flush", 24, 25), fault("cut", 500, 501),
		withToken(7, held("c", 1, Lock{"number", Fenced}, 0, 10, 20, 21)),
		append(held("d", 1, Lock{"book", Read}, 0, 10, 20, 21)[:4], did(22, "d", 1, Doubtful)))
	require.Contains(t, page, "<html")
	for _, text := range []string{
		`a#1 plain "lock": taken`, `a#1 plain "lock": ends (released)`, `b#1 plain "lock": taken`, `b#1 plain "lock": ends (released)`,
		`c#1 fenced "number": taken with token 7`, `d#1 read "book": taken`, `d#1 read "book": ends (lost, doubtful)`,
		`"lock" is free`, `held by a#1 (1)`, `free`, `the servers may forget the token`,
		`cut [a b]`, `flush`, `the servers may forget`,
	} {
		require.Contains(t, page, inPage(t, text))
	}
}

func TestThePictureShowsOnlyWhatHasNoOrder(t *testing.T) {
	overlapping := held("b", 1, plain, 0, 15, 30, 31)
	page := draw(t, held("a", 1, plain, 0, 10, 20, 25), overlapping, held("c", 1, Lock{"elsewhere", Plain}, 0, 10, 20, 21))
	require.Contains(t, page, inPage(t, `"lock" is held by a#1 (1)`))
	require.Contains(t, page, inPage(t, `b#1 plain "lock": taken`))
	require.NotContains(t, page, "elsewhere")
}

func TestThePictureOfALongHistoryHasItsLastOperations(t *testing.T) {
	var events [][]Event
	for i := range mostOperations {
		events = append(events, held("a", i+1, plain, 10*i, 10*i+1, 10*i+5, 10*i+6))
	}
	page := draw(t, events...)
	require.Contains(t, page, inPage(t, `a#4000 plain "lock": taken`))
	require.Contains(t, page, inPage(t, `a#2001 plain "lock": taken`))
	require.NotContains(t, page, inPage(t, `a#1000 plain "lock": taken`))
}

func TestOperationsOnOneLineOfThePictureDoNotOverlap(t *testing.T) {
	h := story(t, held("a", 1, plain, 0, 10, 20, 21), held("a", 2, plain, 0, 30, 40, 41), held("b", 1, plain, 0, 50, 60, 61))
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

func TestAPictureThatCannotBeWrittenIsAnError(t *testing.T) {
	require.ErrorContains(t, story(t, held("a", 1, plain, 0, 10, 20, 21)).Picture(full{}), "no space left")
}
