package locks

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/identity"
)

// One lock with nonsense in it must not hide the others.
func TestEveryTimeHasAFormInJSON(t *testing.T) {
	t.Parallel()
	for _, odd := range []time.Time{time.UnixMicro(math.MaxInt64), time.UnixMilli(math.MinInt64),
		time.UnixMilli(math.MaxInt64), {}} {
		client := Client{ID: "a", Identity: identity.Identity{PID: 7, Start: odd}}
		text, err := json.Marshal(Lock{Name: "l", Subscribers: -1,
			Holders: []Holder{{Owner: "a:1", Client: client}},
			Waiters: []Waiter{{Owner: "b:1", Since: odd, Until: odd}}})
		require.NoError(t, err)
		require.JSONEq(t, `{"name": "l", "kind": "", "ttl_ms": 0, "waiters": [{"owner": "b:1"}],
			"holders": [{"owner": "a:1", "count": 0, "client": {"pid": 7}}]}`, string(text))
	}
}

// TestDocumentationNamesEveryField finds each field of JSON in docs/program.md.
func TestDocumentationNamesEveryField(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/program.md")
	require.NoError(t, err)
	for _, file := range []string{"json.go", "../doctor/finding.go"} {
		code, err := os.ReadFile(file)
		require.NoError(t, err)
		fields := regexp.MustCompile(`json:"(\w+)`).FindAllSubmatch(code, -1)
		require.NotEmpty(t, fields, file)
		for _, field := range fields {
			require.Contains(t, string(page), "`"+string(field[1])+"`")
		}
	}
}
