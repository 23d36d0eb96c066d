package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/doctable"
	"holdfast/internal/redistest"
)

// rules returns the rights as rules of an ACL, for names that begin with prefix.
func (r rights) rules(prefix string) (rules []string) {
	for command := range strings.FieldsSeq(r.commands) {
		rules = append(rules, "+"+command)
	}
	for _, stem := range r.keys {
		rules = append(rules, "~"+pattern(stem, prefix))
	}
	for _, stem := range r.channels {
		rules = append(rules, "&"+pattern(stem, prefix))
	}
	return rules
}

var rows = map[string]rights{
	"every lock": everyLock, "plain locks": plain, "fair locks": fair, "fenced locks": fenced,
	"read-write locks": readWrite, "hand-overs of plain and fenced locks": handOver,
}

func TestRightsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	rulesOf := func(all ...rights) (rules []string) {
		for _, r := range all {
			rules = append(rules, r.rules("order:")...)
		}
		slices.Sort(rules)
		return slices.Compact(rules)
	}
	for heading, all := range map[string][]rights{
		"Plain locks":      {everyLock, plain, handOver},
		"Fenced locks":     {everyLock, fenced, handOver},
		"Fair locks":       {everyLock, fair},
		"Read-write locks": {everyLock, readWrite},
	} {
		lines := doctable.Rules(t, "../../../..", heading)
		if last := all[len(all)-1]; len(all) == 3 {
			require.ElementsMatch(t, last.rules("order:"), lines[len(lines)-1], heading)
		}
		listed := slices.Sorted(slices.Values(slices.Concat(lines...)))
		require.Equal(t, rulesOf(all...), slices.Compact(listed), heading)
	}
}

func TestEveryRightThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	unseen := []string{"+evalsha", "+eval", "+subscribe", "+unsubscribe", "+ping", "+hello", "+client"}
	for _, prefix := range []string{"order:", "{order}:"} {
		server.Do(t, "ACL", "SETUSER", "nobody", "reset", "on", ">secret", "resetchannels",
			"+ping", "+hello", "+client", "~"+prefix+"*")
		option := server.ClientOption()
		option.Username, option.Password = "nobody", "secret"
		n := &node{Options: Options{Prefix: prefix}, redis: connected(t, option)}
		n.whole = n.redis
		for name, r := range rows {
			want := r.rules(prefix)
			if len(r.channels) > 0 {
				want = append(want, "+publish")
			}
			want = slices.DeleteFunc(want, func(rule string) bool {
				return slices.Contains(unseen, rule) || rule == "~"+prefix+"*" ||
					rule == "+publish" && len(r.channels) == 0 // has nowhere to go
			})
			// Without +pttl and +publish it is not known which keys and channels are allowed.
			got := n.missing(t.Context(), r)
			for _, rule := range want {
				if strings.HasPrefix(rule, "+") {
					require.Contains(t, got, rule, name)
				}
			}
			require.Subset(t, want, got, name)
		}
		server.Do(t, "ACL", "SETUSER", "nobody", "+pttl", "+publish", "+@all")
		for name, r := range rows {
			want := slices.DeleteFunc(r.rules(prefix), func(rule string) bool {
				return rule[0] == '+' || rule == "~"+prefix+"*"
			})
			require.ElementsMatch(t, want, n.missing(t.Context(), r), name)
		}
	}
}

func TestUserWithTheRightsOfTheDocumentPasses(t *testing.T) {
	t.Parallel()
	rules := []string{"resetchannels"}
	for _, r := range rows {
		rules = append(rules, r.rules("order:")...)
	}
	server := redistest.Start(t, redistest.WithUser("shop", "secret", rules...))
	for _, f := range examined(t, server.Client(t), "locks", Options{Prefix: "order:"}) {
		require.Equal(t, OK, f.State, "%+v", f)
	}
	require.Empty(t, server.Keys(t))
}
