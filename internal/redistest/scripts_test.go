package redistest

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// answer is a script whose reply tells whether it was changed.
const answer = "return answer or 'as it was'"

// withPrefix changes what answer replies.
var withPrefix = WithScripts(func(source string) string {
	return "local answer = 'changed' " + source
})

// evalsha runs answer by its SHA-1.
func evalsha(t *testing.T, c rueidis.Client) (string, error) {
	t.Helper()
	return c.Do(t.Context(), c.B().Evalsha().Sha1(sha(answer)).Numkeys(0).Build()).ToString()
}

func eval(t *testing.T, c rueidis.Client) string {
	t.Helper()
	got, err := c.Do(t.Context(), c.B().Eval().Script(answer).Numkeys(0).Build()).ToString()
	require.NoError(t, err)
	return got
}

func TestScriptsOfClientsAreChanged(t *testing.T) {
	s := Start(t, withPrefix)
	c := s.Client(t)
	_, err := evalsha(t, c)
	require.ErrorContains(t, err, "NOSCRIPT")
	require.Equal(t, "changed", eval(t, c))
	got, err := evalsha(t, s.Client(t)) // of any client
	require.NoError(t, err)
	require.Equal(t, "changed", got)

	s.Do(t, "SCRIPT", "FLUSH")
	_, err = evalsha(t, c)
	require.ErrorContains(t, err, "NOSCRIPT")
	require.Equal(t, "changed", eval(t, c))
	require.Equal(t, "as it was", strings.ReplaceAll(s.DoString(t, "EVAL",
		"local answer "+answer, "0"), "\n", ""))
}
