//go:build nightly

package integration_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/doctable"
	"holdfast/internal/logtest"
	"holdfast/internal/luashim"
	"holdfast/internal/rediserr"
	"holdfast/internal/redistest"
	"holdfast/internal/wire"
	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
)

// The tables in docs/servers.md are written by this test, which runs what they say on a hundred
// servers, for more than a minute:
//
//	HOLDFAST_UPDATE=1 make tagged

const (
	refusedBegin = "<!-- tables: written by TestTablesOfRefusedCommandsAreTrue -->\n"
	refusedEnd   = "<!-- end of tables -->\n"
)

// way is how a server refuses a command.
type way string

const (
	renamedAway  way = "renamed away"
	noPermission way = "NOPERM"
	notInScripts way = "not allowed from script" // but from clients
)

// How a lock does on a server that refuses a command. works: as it does elsewhere.
const (
	works           = "works"
	withoutHandOver = "no hand-overs"
	withoutWakeUps  = "no wake-ups"
	refused         = "rejected"
)

// commands has all that docs/permissions.md lists for locks on a single server, and SCRIPT.
var commands = []string{
	"EVALSHA", "EVAL", "PTTL", "HSET", "PEXPIRE", "HEXISTS", "HRANDFIELD", "HDEL",
	"TIME", "PUBSUB", "ZPOPMIN", "ZADD", "PUBLISH", "SUBSCRIBE",
	"GET", "SET", "INCR", "HGET", "EXISTS", "DEL",
	"ZRANGE", "ZREM", "ZSCORE", "LINDEX", "LPOP", "LRANGE", "LREM", "RPUSH",
	"INFO", "LASTSAVE", "WAIT", "HELLO", "CLIENT", "UNSUBSCRIBE", "PING", "SCRIPT", "HLEN"}

// onClusters has those that it lists for a cluster.
var onClusters = []string{"CLUSTER", "PUBSUB", "SPUBLISH", "SSUBSCRIBE", "SUNSUBSCRIBE", "ASKING",
	"PUBLISH", "SUBSCRIBE", "UNSUBSCRIBE"}

// outsideScripts has the commands that only clients send.
var outsideScripts = []string{"EVALSHA", "EVAL", "SCRIPT", "HELLO", "CLIENT", "PING", "SUBSCRIBE",
	"UNSUBSCRIBE", "WAIT", "CLUSTER", "SSUBSCRIBE", "SUNSUBSCRIBE", "ASKING"}

// place is a server that refuses a command, with two clients of it.
type place struct {
	server         *redistest.Server
	cluster        *redistest.Cluster // that it belongs to; nil if to none
	holder, waiter *party
	failure        string // why there are no clients; "" if there are
}

// party is a client whose scripts are recorded.
type party struct {
	rueidis.Client
	locks *rlock.Client
	log   logtest.Lines

	mu       sync.Mutex
	requests []request // guarded by mu
}

// request is a script that the server did not refuse.
type request struct {
	text       string
	began, end time.Time
}

// Do implements [rueidis.Client].
func (p *party) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	words := command.Commands() // which are gone afterwards
	script := strings.HasPrefix(words[0], "EVAL")
	text := strings.Join(words[min(2, len(words)):], " ") + " " // its keys and arguments
	began := time.Now()
	result := p.Client.Do(ctx, command)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := result.Error(); script && (err == nil || rueidis.IsRedisNil(err)) {
		p.requests = append(p.requests, request{text, began, time.Now()})
	}
	return result
}

// asked returns the requests that name a lock.
func (p *party) asked(lock string) (asked []request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if strings.Contains(r.text, lock+" ") {
			asked = append(asked, r)
		}
	}
	return asked
}

func newParty(t *testing.T, option rueidis.ClientOption, o rlock.Options) (*party, error) {
	t.Helper()
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, err
	}
	t.Cleanup(client.Close)
	p := &party{Client: client}
	o.Logger, o.Tracer, o.CommandTimeout = p.log.Logger(), how{}, longWait
	p.locks, err = rlock.New(p, o)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = p.locks.Close(context.Background()) })
	return p, nil
}

// how is a tracer that tells a caller, through its context, how a lock was acquired.
type how struct{}

type howKey struct{}

// AcquireStart implements [rlock.Tracer].
func (how) AcquireStart(ctx context.Context, _ rlock.AcquireStart) context.Context { return ctx }

// AcquireEnd implements [rlock.Tracer].
func (how) AcquireEnd(ctx context.Context, d rlock.AcquireEnd) {
	if told, ok := ctx.Value(howKey{}).(*rlock.How); ok && d.Err == nil {
		*told = d.How
	}
}

// pairOf returns the locks of two clients that exclude each other, and their name.
type pairOf func(holder, waiter *rlock.Client) (held, wanted rlock.Locker, name string)

// same returns the pair of two locks of one kind.
func same(of func(c *rlock.Client, name string) rlock.Locker, name string) pairOf {
	return func(a, b *rlock.Client) (rlock.Locker, rlock.Locker, string) {
		return of(a, name), of(b, name), name
	}
}

// column is a kind of lock in the tables.
type column struct {
	title string
	asks  int // how often a waiter has asked by the time that it listens
	pairs []pairOf
}

var (
	locks = []column{
		{"plain", 2, []pairOf{same(kinds["reentrant"], "plain")}},
		{"fenced", 2, []pairOf{same(kinds["fenced"], "fenced")}},
		{"fair", 2, []pairOf{same(kinds["fair"], "fair")}},
		{"read-write", 2, []pairOf{
			func(a, b *rlock.Client) (rlock.Locker, rlock.Locker, string) {
				return kinds["read"](a, "read"), kinds["write"](b, "read"), "read"
			},
			func(a, b *rlock.Client) (rlock.Locker, rlock.Locker, string) {
				return kinds["write"](a, "write"), kinds["read"](b, "write"), "write"
			},
		}},
	}
	composed = []column{
		{"MultiLock", 3, []pairOf{same(func(c *rlock.Client, name string) rlock.Locker {
			return multilock.NewOn(c, name, name+" too")
		}, "multi")}},
		{"RedLock", 2, []pairOf{same(redLock(redlock.Options{FsyncAlways: true}), "red")}},
		{"RedLock with `Epoch`", 2,
			[]pairOf{same(redLock(redlock.Options{FsyncAlways: true, Epoch: true}), "epoch")}},
	}
)

// redLock returns a RedLock of one node.
func redLock(o redlock.Options) func(c *rlock.Client, name string) rlock.Locker {
	o.MaxLease, o.NodeTimeout = time.Duration(2*longLease), longWait
	return func(c *rlock.Client, name string) rlock.Locker { return redlock.NewOn(name, o, c) }
}

// longWait is far longer than a waiter sleeps.
const longWait = 20 * time.Second

// try contends for a lock, and returns how it does. A busy machine makes no difference: a waiter
// that was not told has slept for 5 s between its requests.
func (p *place) try(ctx context.Context, asks int, pair pairOf) string {
	if p.failure != "" {
		return p.failure
	}
	held, wanted, name := pair(p.holder.locks, p.waiter.locks)
	if refused := p.probe(name); refused != "" {
		return refused
	}
	ctx, cancel := context.WithTimeout(ctx, longWait)
	defer cancel()
	hold, err := held.TryLock(ctx, longWait, longLease)
	if err != nil {
		return refusedAs(err)
	}
	nested, err := held.TryLock(hold.Context(), longWait, longLease)
	if err != nil {
		return refusedAs(err) + " at re-entry"
	}

	var by rlock.How
	var got *rlock.Hold
	done := make(chan error, 1)
	go func() {
		var err error
		got, err = wanted.Lock(context.WithValue(ctx, howKey{}, &by), longLease)
		done <- err
	}()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for waits := false; !waits; {
		select {
		case err := <-done:
			return refusedAs(err) + " when waiting"
		case <-again.C:
			waits = p.waiter.waits(name, asks)
		}
	}
	if err := hold.Extend(ctx, 2*longLease); err != nil {
		return refusedAs(err) + " at renewal"
	}
	if err := nested.Unlock(); err != nil {
		return refusedAs(err) + " at release"
	}
	released := time.Now()
	if err := hold.Unlock(); err != nil {
		return refusedAs(err) + " at release"
	}
	if err := <-done; err != nil {
		return refusedAs(err) + " when waiting"
	}
	told := by.String()
	if by == rlock.Free {
		told = p.waiter.told(name, released)
	}
	if err := got.Unlock(); err != nil {
		return refusedAs(err) + " at release"
	}
	server := p.server
	if p.cluster != nil {
		server = p.cluster.Nodes[int(wire.Slot(name))*len(p.cluster.Nodes)/16384]
	}
	if ttl, err := server.Call("PTTL", name); err != nil || ttl != int64(-2) {
		return fmt.Sprint("not free: ", ttl, err)
	}
	return told
}

// probe returns what a RedLock meets at its first use of a node, which it does not count yet; "" if
// it may use it later. It ends that delay.
func (p *place) probe(name string) string {
	of := map[string]redlock.Options{"red": {}, "epoch": {FsyncAlways: true, Epoch: true}}
	o, red := of[name]
	if !red {
		return ""
	}
	_, err := redLock(o)(p.holder.locks, name).TryLock(context.Background(), rlock.NoWait, longLease)
	var delayed *redlock.DelayedError
	if !errors.As(err, &delayed) {
		return refusedAs(err)
	}
	if o.Epoch {
		if _, err := p.server.Call("SET", wire.EpochKey, "1000"); err != nil {
			return refusedAs(err)
		}
	}
	return ""
}

// waits reports whether the client waits for a lock: it has asked often enough, or may not listen.
func (p *party) waits(lock string, asks int) bool {
	asked := len(p.asked(lock))
	return asked >= asks || asked >= asks-1 &&
		slices.ContainsFunc(p.log.With("rejects the channel"), func(line string) bool {
			return strings.Contains(line, "{"+lock+"}")
		})
}

// told returns that the lock was free, or that the client asked for it after its release only
// because it had slept for long enough.
func (p *party) told(lock string, released time.Time) string {
	asked := p.asked(lock)
	for i, r := range asked {
		if i > 0 && r.began.After(released) && r.began.Sub(asked[i-1].end) > 4*time.Second {
			return withoutWakeUps
		}
	}
	return rlock.Free.String()
}

// refusedAs returns a cell for an error: the code that a server gave.
func refusedAs(err error) string {
	var by *rlock.ServerError
	if errors.As(err, &by) {
		if by.Code == "" && strings.Contains(by.Advice, "DisableCache") {
			return refused // by rueidis, which says what to do
		}
		return refused + ": " + cmp.Or(by.Code, by.Advice)
	}
	return fmt.Sprint("fails: ", err)
}

// tryAll tries the locks of all columns at once, and returns a cell for each.
func (p *place) tryAll(t *testing.T, columns []column) []string {
	t.Helper()
	said := make([][]string, len(columns))
	var all sync.WaitGroup
	for i, c := range columns {
		said[i] = make([]string, len(c.pairs))
		for j, pair := range c.pairs {
			all.Go(func() { said[i][j] = p.try(t.Context(), c.asks, pair) })
		}
	}
	all.Wait()
	cells := make([]string, len(columns))
	for i := range cells {
		cells[i] = strings.Join(slices.Compact(said[i]), " or ")
	}
	return cells
}

// open connects two clients to a server.
func (p *place) open(t *testing.T, option rueidis.ClientOption, o rlock.Options) *place {
	t.Helper()
	var err error
	p.holder, err = newParty(t, option, o)
	if err == nil {
		p.waiter, err = newParty(t, option, o)
	}
	if err != nil {
		p.failure = refusedAs(rediserr.Classify(err))
	}
	return p
}

// scene is a row of a table before it is run.
type scene struct {
	command string
	with    string // a suffix of the command: what clients set, or the only way
	ways    []way  // which must make no difference
	mutate  func(*rueidis.ClientOption)
	options rlock.Options
	cluster bool // with sharded channels
}

func noCache(o *rueidis.ClientOption) { o.DisableCache = true }

func resp2(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true }

// start starts the server of a scene. The way "" refuses nothing.
func (sc scene) start(t *testing.T, w way) *place {
	t.Helper()
	var options []redistest.Option
	switch w {
	case renamedAway:
		options = append(options, redistest.WithoutCommands(sc.command))
	case notInScripts:
		options = append(options, redistest.WithScripts(luashim.Refusing(sc.command)))
	}
	p, option := &place{}, rueidis.ClientOption{}
	var nodes []*redistest.Server
	if sc.cluster {
		p.cluster = redistest.StartCluster(t, 2, options...)
		nodes, option = p.cluster.Nodes, p.cluster.ClientOption()
	} else {
		if sc.options.SyncReplicas > 0 {
			options = append(options, redistest.WithFastReplicas(), redistest.WithHostNetwork())
		}
		nodes = append(nodes, redistest.Start(t, options...))
		option = nodes[0].ClientOption()
		if sc.options.SyncReplicas > 0 {
			redistest.StartReplica(t, nodes[0])
		}
	}
	p.server = nodes[0]
	if w == noPermission {
		for _, node := range nodes {
			node.Do(t, "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all",
				"-"+strings.ToLower(sc.command))
		}
		option.Username, option.Password = "app", "secret"
	}
	if sc.mutate != nil {
		sc.mutate(&option)
	}
	return p.open(t, option, sc.options)
}

// plainly returns a cell in the words of the tables: how it differs from elsewhere, without the
// usual code of a refusal.
func plainly(cell, elsewhere, command string, w way) string {
	usual := rediserr.NoCommand
	switch {
	case w == noPermission:
		usual = "NOPERM"
	case slices.Contains(outsideScripts, command):
		usual = "UNSUPPORTED"
	}
	cell = strings.ReplaceAll(cell, ": "+usual, "")
	switch {
	case cell == elsewhere:
		return works
	case strings.HasPrefix(cell, refused+" or "), strings.HasSuffix(cell, " or "+refused):
		return refused // at the first command of one of both locks
	case elsewhere == rlock.Granted.String() && cell == rlock.Free.String():
		return withoutHandOver
	}
	return cell
}

// late reports whether a cell may say only that a busy machine was too slow: for a time-out, or so
// that the waiter looked by itself after the release. Such a scene is tried once more.
func late(cell string) bool {
	return strings.Contains(cell, "fails: ") || strings.Contains(cell, "the server is running") ||
		strings.Contains(cell, rlock.Free.String())
}

// atOnce bounds how many servers are tried at once.
const atOnce = 12

// refusedTable runs the scenes, and returns their table.
func refusedTable(t *testing.T, columns []column, scenes []scene) string {
	t.Helper()
	elsewhere := scene{cluster: scenes[0].cluster}.start(t, "").tryAll(t, columns)
	row := func(sc scene, w way) (row string) {
		var cells []string
		for tries := 0; tries == 0 || tries == 1 && slices.ContainsFunc(cells, late); tries++ {
			cells = sc.start(t, w).tryAll(t, columns)
			for i, cell := range cells {
				cells[i] = plainly(cell, elsewhere[i], sc.command, w)
			}
		}
		for _, cell := range cells {
			row += strings.TrimSuffix(" "+cell, " "+works) + " |"
		}
		return row + "\n"
	}
	rows := make([][]string, len(scenes)) // by way
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, sc := range scenes {
		rows[i] = make([]string, len(sc.ways))
		for j, w := range sc.ways {
			all.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				rows[i][j] = row(sc, w)
			})
		}
	}
	all.Wait()

	var order []string
	titles := make(map[string][]string) // by row
	for i, sc := range scenes {
		row, title := rows[i][0], "`"+sc.command+"`"+sc.with
		require.Len(t, slices.Compact(slices.Clone(rows[i])), 1, "%s: the ways %v differ: %q", title,
			sc.ways, rows[i])
		if titles[row] == nil {
			order = append(order, row)
		}
		titles[row] = append(titles[row], title)
	}
	var alike, differ strings.Builder
	differ.WriteString("\n| command |")
	for _, c := range columns {
		differ.WriteString(" " + c.title + " |")
	}
	differ.WriteString("\n|" + strings.Repeat("---|", 1+len(columns)) + "\n")
	for _, row := range order {
		cell, _, _ := strings.Cut(row, " |")
		if row == strings.Repeat(cell+" |", len(columns))+"\n" {
			cell = cmp.Or(strings.TrimSpace(cell), works)
			alike.WriteString("- **" + cell + "** without\n  " + wrapped(titles[row]) + "\n")
			continue
		}
		differ.WriteString("| " + strings.Join(titles[row], ", ") + " |" + row)
	}
	return alike.String() + differ.String()
}

// wrapped joins words with commas, in lines that are not too long.
func wrapped(words []string) string {
	lines := []string{words[0]}
	for _, word := range words[1:] {
		last := &lines[len(lines)-1]
		*last += ","
		if len(*last)+len(word) > 140 {
			lines = append(lines, word)
			continue
		}
		*last += " " + word
	}
	return strings.Join(lines, "\n  ")
}

func TestTablesOfRefusedCommandsHaveThoseOfAllPermissions(t *testing.T) {
	t.Parallel()
	for _, heading := range []string{"Plain locks", "Fenced locks", "Fair locks", "Read-write locks",
		"RedLocks", "Clusters, Sentinel and replicas"} {
		for _, rule := range slices.Concat(doctable.Rules(t, "..", heading)...) {
			if command, is := strings.CutPrefix(rule, "+"); is {
				require.Contains(t, slices.Concat(commands, onClusters), strings.ToUpper(command))
			}
		}
	}
}

func TestTablesOfRefusedCommandsAreTrue(t *testing.T) {
	t.Parallel()
	var scenes, clustered []scene
	away, noPerm := []way{renamedAway}, []way{noPermission}
	for _, command := range commands {
		switch {
		case command == "HELLO":
			scenes = append(scenes, scene{command: command, ways: away, with: " (renamed away)"},
				scene{command: command, ways: noPerm, with: " (NOPERM)"})
		case slices.Contains(outsideScripts, command):
			scenes = append(scenes, scene{command: command, ways: away})
		default:
			scenes = append(scenes, scene{command: command, ways: []way{renamedAway, notInScripts}})
		}
	}
	scenes = append(scenes,
		scene{command: "HELLO", ways: away, with: " with `DisableCache`", mutate: noCache},
		scene{command: "HELLO", ways: away, with: " with `DisableCache` and `AlwaysRESP2`",
			mutate: resp2},
		scene{command: "CLIENT", ways: away, with: " with `DisableCache`", mutate: noCache},
		scene{command: "WAIT", ways: away, with: " with `SyncReplicas`",
			options: rlock.Options{SyncReplicas: 1}})
	for _, command := range onClusters {
		if command == "PUBSUB" {
			clustered = append(clustered,
				scene{command: command, ways: noPerm, with: " (NOPERM)", cluster: true},
				scene{command: command, ways: away, with: " (renamed away)", cluster: true})
			continue
		}
		clustered = append(clustered, scene{command: command, ways: away, cluster: true})
	}
	clustered = append(clustered,
		scene{command: "HELLO", ways: away, with: " with `DisableCache` and `AlwaysRESP2`",
			mutate: resp2, cluster: true},
		scene{command: "CLIENT", ways: away, with: " with `DisableCache`", mutate: noCache,
			cluster: true})
	want := "All kinds of locks:\n\n" + refusedTable(t, slices.Concat(locks, composed), scenes) +
		"\nAll kinds of locks on a cluster with sharded channels:\n\n" +
		refusedTable(t, locks, clustered)

	doctable.Require(t, "../docs/servers.md", refusedBegin, refusedEnd, want, "make tagged")
}
