package printable_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/printable"
)

const evil = "a\x1b[2J\r\n\x7f\u009b\u202e\U000e0001\xff\"\\ü"

func TestTextMovesNoCursor(t *testing.T) {
	require.Equal(t, `a\x1b[2J\r\n\x7f\u009b\u202e\U000e0001\xff"\ü`, printable.Text(evil))
	for _, c := range []string{"\x1b", "\x7f", "\u009b", "\u202e", "\U000e0001", "\xff"} {
		require.Equal(t, strings.Trim(strconv.Quote(c), `"`), printable.Text(c))
	}
	require.Equal(t, "a\\r\nb", printable.Lines("a\r\nb"))
}

func TestShortTextIsShort(t *testing.T) {
	require.Equal(t, printable.Text(evil), printable.Short(evil))
	for _, c := range []string{"x", "ü", "\x1b", "\xff", "€", "\U000e0001", "\x1b€€€x"} {
		short := printable.Short(strings.Repeat(c, 1<<20))
		require.LessOrEqual(t, len(short), 403)
		require.Greater(t, len(short), 390)
		require.Equal(t, printable.Text(short), short)
		require.Equal(t, "…", short[len(short)-3:])
	}
}

// A document stays the same to those that parse it.
func TestJSONMovesNoCursorAndIsTheSame(t *testing.T) {
	want := map[string]string{"owner": strings.ToValidUTF8(evil, "?")}
	document, err := json.Marshal(want)
	require.NoError(t, err)
	escaped := printable.JSON(document)
	require.Equal(t, string(escaped), printable.Text(string(escaped)))
	var got map[string]string
	require.NoError(t, json.Unmarshal(escaped, &got))
	require.Equal(t, want, got)
}
