package history

import (
	"bytes"
	"encoding/json"
	"testing"

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
