package lua

import (
	"context"
	"crypto/sha1"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/fragments"
	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
)

//go:embed *.lua common/*.lua
var sources embed.FS

// Redis is what sends the commands: a client, or a dedicated connection.
type Redis = rueidis.CoreClient

// script is one .lua file with the fragments that it needs, and the SHA-1 by which servers know it.
type script struct{ source, sha1 string }

// scripts holds all scripts by file.
var scripts = load()

// load reads all .lua files; it panics if one names a fragment that does not exist.
func load() map[string]*script {
	loaded := map[string]*script{}
	for file, source := range fragments.Read(sources) {
		loaded[file] = &script{source, fmt.Sprintf("%x", sha1.Sum([]byte(source)))}
	}
	return loaded
}

// follower is a Redis that may be another server from now on, after one has rejected a write
// because it is a replica.
type follower interface {
	// Follow reports whether it is, so that the command should be sent again. ctx ends its wait.
	Follow(ctx context.Context) bool
}

// run executes the script, and once more if a replica has rejected it and the address of the server
// leads to another one meanwhile. All keys must be in one slot. A client with DisableAutoPipelining
// sends it on a shared connection as well: the application may have used up the pool of the others
// with commands that block.
func (s *script) run(ctx context.Context, c Redis, keys []string, args ...string) reply {
	rp := s.send(ctx, c, keys, args)
	if rp.err != nil && rediserr.Demoted(rp.err) {
		other, follows := c.(follower)
		if follows && other.Follow(ctx) {
			rp = s.send(ctx, c, keys, args)
		}
	}
	return rp
}

// send executes the script with EVALSHA, and once more with EVAL if the server does not know it.
func (s *script) send(ctx context.Context, c Redis, keys, args []string) reply {
	if on, remembers := c.(*remembering); remembers {
		if _, known := on.known.Load(s); !known {
			return s.runFirst(ctx, on, keys, args)
		}
	}
	n := int64(len(keys))
	bySHA := c.B().Evalsha().Sha1(s.sha1).Numkeys(n).Key(keys...).Arg(args...).Build()
	message, err := c.Do(ctx, bySHA.ToPipe()).ToMessage()
	if isNoScript(err) {
		bySource := c.B().Eval().Script(s.source).Numkeys(n).Key(keys...).Arg(args...).Build()
		message, err = c.Do(ctx, bySource.ToPipe()).ToMessage()
	}
	return s.reply(message, err)
}

func isNoScript(err error) bool {
	refusal, ok := rueidis.IsRedisErr(err)
	return ok && refusal.IsNoScript()
}

func (s *script) reply(message rueidis.RedisMessage, err error) reply {
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return reply{message: message, err: s.explain(rediserr.Classify(err))}
}

// remembering is a client that remembers which scripts its server has executed.
type remembering struct {
	rueidis.Client
	known sync.Map // of *script
}

// Remembering returns a client that sends the first use of each script on the connection that
// rueidis opens first. Otherwise rueidis might dial a second connection for the hash of the script,
// and a third connection for its source. On a cluster the slot decides about the connection, so
// Remembering returns c.
func Remembering(c rueidis.Client) rueidis.Client {
	if c.Mode() == rueidis.ClientModeCluster {
		return c
	}
	return &remembering{Client: c}
}

// Follow implements follower, if the client does.
func (c *remembering) Follow(ctx context.Context) bool {
	other, follows := c.Client.(follower)
	return follows && other.Follow(ctx)
}

// runFirst is send for the first use of a script. rueidis sends commands without a key, as it takes
// those of Arbitrary, on its first connection.
func (s *script) runFirst(ctx context.Context, c *remembering, keys, args []string) reply {
	do := func(command, what string) (rueidis.RedisMessage, error) {
		cmd := c.B().Arbitrary(command, what, strconv.Itoa(len(keys))).Args(keys...).Args(args...).Build()
		return c.Do(ctx, cmd.ToPipe()).ToMessage()
	}
	message, err := do("EVALSHA", s.sha1)
	if isNoScript(err) {
		message, err = do("EVAL", s.source)
	}
	rp := s.reply(message, err)
	if rp.err == nil {
		c.known.Store(s, nil)
	}
	return rp
}

// calledAt matches the line of a script in an error message, and called a command on such a line.
var (
	calledAt = regexp.MustCompile(`user_script: ?(\d+)`)
	called   = regexp.MustCompile(`(?:call|attempt)\('([A-Z]+)'`)
)

// explain completes the advice of an error for a command that a script may not call: servers do not
// name the command, but its line.
func (s *script) explain(err error) error {
	if err == nil {
		return nil // before e, which takes memory
	}
	var e *rediserr.Error
	if !errors.As(err, &e) || e.Code != rediserr.NoCommand {
		return err
	}
	if at := calledAt.FindStringSubmatch(e.Message); at != nil {
		number, _ := strconv.Atoi(at[1])
		lines := strings.Split(s.source, "\n")
		line := lines[min(max(number, 1), len(lines))-1]
		if command := called.FindStringSubmatch(line); command != nil {
			rediserr.Advise(e, command[1])
		}
	}
	return err
}

// Ask sends ASKING, which must precede a command for a slot that is moving to the node of c.
func Ask(ctx context.Context, c Redis) error {
	return rediserr.Classify(c.Do(ctx, c.B().Asking().Build()).Error())
}

// Acknowledged blocks until that many replicas have everything that was written through c, a
// dedicated connection, but for at most timeout. It returns how many have it by then.
func Acknowledged(ctx context.Context, c Redis, replicas int, timeout time.Duration) (int, error) {
	wait := c.B().Wait().Numreplicas(int64(replicas)).Timeout(timeout.Milliseconds()).Build()
	n, err := c.Do(ctx, wait).ToInt64()
	return int(n), rediserr.Classify(err)
}

// Alone reports whether c, a dedicated connection, leads to a master without a replica that could
// acknowledge a write. Replicas that still copy the master's data cannot.
func Alone(ctx context.Context, c Redis) (bool, error) {
	said, err := c.Do(ctx, c.B().Info().Section("replication").Build()).ToString()
	if err != nil {
		return false, rediserr.Classify(err)
	}
	for line := range strings.Lines(said) {
		_, state, stated := strings.Cut(line, ",state=")
		ready := !stated || strings.HasPrefix(state, "online,")
		if replicaLine.MatchString(line) && ready {
			return false, nil
		}
	}
	return strings.Contains(said, "role:master\r\n"), nil
}

// replicaLine matches a line of INFO about a replica.
var replicaLine = regexp.MustCompile(`^slave\d+:`)

// milliseconds formats a lease. Fractions are cut off: no lease in Redis is longer than asked for.
func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// publish has the argument of a script for each kind of channels.
var publish = [...]string{wire.Classic: "PUBLISH", wire.Sharded: "SPUBLISH", wire.Both: "BOTH"}

var flag = map[bool]string{false: "0", true: "1"}
