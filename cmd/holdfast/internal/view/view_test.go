package view

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/internal/identity"
	"holdfast/internal/survey"
	"holdfast/rlock"
)

var (
	nightly = locks.Client{Identity: identity.Identity{Program: "backup", Host: "web-1", PID: 4711,
		Label: "nightly"}}
	java = locks.Holder{Owner: "b983c153-7421-469a-addb-44fb92259a1b:12", Count: 2}
)

var now = time.Unix(1_700_000_000, 0)

func someLocks() []locks.Lock {
	return []locks.Lock{
		{
			Name: "job", Kind: survey.KindPlain, TTL: 12_345 * time.Millisecond,
			Holders: []locks.Holder{{Owner: "1:1", Count: 1, Client: nightly}},
			Waiters: make([]locks.Waiter, 3),
		},
		{Name: "stock:é", Kind: survey.KindFair, TTL: rlock.NoExpiry, Holders: []locks.Holder{java}},
		{
			Name: "prices", Kind: survey.KindReadWrite, TTL: 150 * time.Second,
			Holders: []locks.Holder{
				{Owner: "1:1", Count: 1, Mode: "read", Client: nightly},
				{Owner: "2:1", Count: 2, Mode: "read"},
			},
		},
		{Name: "queue", Kind: survey.KindFair, Waiters: make([]locks.Waiter, 12)},
	}
}

func TestTableAlignsItsColumns(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"NAME     KIND        HOLDER                       COUNT         TTL  WAITERS",
		"job      lock        nightly on web-1 (pid 4711)      1      12.3 s        3",
		"stock:é  fair        b983c153…:12                     2  never ends        0",
		"prices   read-write  2 readers                        3       2m30s        0",
		"queue    fair        -                                -           -       12",
	}, Table(someLocks(), 0, now))
}

func TestHeldIsAColumnOfLocksThatAreKnownToBeHeldForSomeTime(t *testing.T) {
	t.Parallel()
	all := someLocks()
	all[0].Holders[0].Client.Held = now.Add(-150 * time.Second)
	all[2].Holders[0].Client.Held = now.Add(-time.Second)
	all[2].Holders[1].Client.Held = now.Add(-3 * time.Second)
	require.Equal(t, []string{
		"NAME     KIND        HOLDER                        HELD  COUNT         TTL  WAITERS",
		"job      lock        nightly on web-1 (pid 4711)  2m30s      1      12.3 s        3",
		"stock:é  fair        b983c153…:12                     -      2  never ends        0",
		"prices   read-write  2 readers                    3.0 s      3       2m30s        0",
		"queue    fair        -                                -      -           -       12",
	}, Table(all, 0, now))
	require.Contains(t, Details(all[0], now), "holder     1:1 holds, held for 2m30s\n")
	require.NotContains(t, Details(all[1], now), "held for")
}

func TestTableShrinksHoldersAndNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"NAME     KIND        HOLDER       COUNT         TTL  WAITERS",
		"job      lock        nightly on…      1      12.3 s        3",
		"stock:é  fair        b983c153…:…      2  never ends        0",
		"prices   read-write  2 readers        3       2m30s        0",
		"queue    fair        -                -           -       12",
	}, Table(someLocks(), 60, now))
	for width := 1; width < 90; width++ {
		for _, line := range Table(someLocks(), width, now) {
			require.LessOrEqual(t, ansi.StringWidth(line), width)
		}
	}
}

func TestLineSaysWhoHoldsForHowLong(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, l := range someLocks() {
		lines = append(lines, Line(l, 0))
	}
	one := locks.Lock{
		TTL: time.Second, Waiters: make([]locks.Waiter, 1),
		Holders: []locks.Holder{
			{Owner: "1:1", Count: 1, Mode: "read", Client: nightly},
			{Owner: "1:1", Count: 1, Mode: "write", Client: nightly},
		},
	}
	require.Equal(t, []string{
		"held by nightly on web-1 (pid 4711), 12.3 s left, 3 waiters",
		"held by b983c153…:12, 2 holds, never ends",
		"held by 2 readers, 2m30s left",
		"free, 12 waiters",
		"held by writer nightly on web-1 (pid 4711), 2 holds, 1.0 s left, 1 waiter",
		"free",
	}, append(lines, Line(one, 0), Line(locks.Lock{}, 0)))
	require.Equal(t, "held by nightly on…", Line(someLocks()[0], 19))
}

func TestNothingFromRedisMovesTheCursor(t *testing.T) {
	t.Parallel()
	evil := "a\x1b[2J\n\"\\\xff"
	l := locks.Lock{Name: evil, Holders: []locks.Holder{
		{Owner: evil + ":" + evil,
			Client: locks.Client{Identity: identity.Identity{Label: evil, Host: evil}}},
	}}
	text := strings.Join(append(Table([]locks.Lock{l}, 0, now), Line(l, 0), ShortOwner(evil)), "")
	require.NotContains(t, text, "\x1b")
	require.NotContains(t, text, "\n")
	require.Contains(t, text, `a\x1b[2J\n"\\xff  `)
}
