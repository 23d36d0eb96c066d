// Package eval executes Lua scripts on Redis with EVALSHA, and reads their replies. The package
// does not know what the scripts do.
package eval

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"holdfast/internal/fragments"
	"holdfast/internal/rediserr"
)

// Script is a .lua file with its fragments, assembled when the script is used first. A program uses
// only some of the scripts, and often none.
type Script struct{ text func() text }

// text is the source of a script, and the SHA-1 by which servers identify the script.
type text struct{ source, sha1 string }

// Load returns the scripts of a directory by file, with fragments from the subdirectory common. The
// first use of a script panics if the script names a missing fragment.
func Load(dir fs.FS) map[string]*Script {
	scripts := map[string]*Script{}
	for _, file := range fragments.Files(dir) {
		scripts[file] = &Script{sync.OnceValue(func() text {
			source := fragments.Assemble(dir, file)
			return text{source, fmt.Sprintf("%x", sha1.Sum([]byte(source)))}
		})}
	}
	return scripts
}

// follower is a client that may reach another server after a server has rejected a write because
// the server is a replica.
type follower interface {
	// Follow reports whether the client now reaches another server, so that the caller sends the
	// command again. Follow waits until ctx ends.
	Follow(ctx context.Context) bool
}

// Run executes the script. If a replica rejects the script and the address meanwhile leads to
// another server, Run executes the script once more. All keys must be in one slot. Run uses a
// shared connection even if the client has DisableAutoPipelining, because the program may have used
// up the pool of the other connections with commands that block.
func (s *Script) Run(ctx context.Context, c rueidis.CoreClient, keys []string, args ...string,
) Reply {
	rp := s.send(ctx, c, keys, args)
	if rp.Err != nil && rediserr.Demoted(rp.Err) {
		other, follows := c.(follower)
		if follows && other.Follow(ctx) {
			rp = s.send(ctx, c, keys, args)
		}
	}
	return rp
}

// send executes the script with EVALSHA. If the server does not know the script, send uses EVAL.
func (s *Script) send(ctx context.Context, c rueidis.CoreClient, keys, args []string) Reply {
	if on, remembers := c.(*remembering); remembers && !slices.Contains(*on.known.Load(), s) {
		return s.runFirst(ctx, on, keys, args)
	}
	n := int64(len(keys))
	bySHA := c.B().Evalsha().Sha1(s.text().sha1).Numkeys(n).Key(keys...).Arg(args...).Build()
	message, err := c.Do(ctx, bySHA.ToPipe()).ToMessage()
	if err == nil || rueidis.IsRedisNil(err) {
		return Reply{message: message}
	}
	if isNoScript(err) {
		bySource := c.B().Eval().Script(s.text().source).Numkeys(n).Key(keys...).Arg(args...).Build()
		message, err = c.Do(ctx, bySource.ToPipe()).ToMessage()
	}
	return s.reply(message, err)
}

// Call has the keys and arguments for an execution of a script.
type Call struct{ Keys, Args []string }

// RunAll executes the script for each call, in pipelined commands, and returns a reply for each
// call. If the server does not know the script, RunAll executes the calls one after the other.
func (s *Script) RunAll(ctx context.Context, c rueidis.CoreClient, calls []Call) []Reply {
	commands := make(rueidis.Commands, len(calls))
	for i, call := range calls {
		commands[i] = c.B().Evalsha().Sha1(s.text().sha1).Numkeys(int64(len(call.Keys))).
			Key(call.Keys...).Arg(call.Args...).Build()
	}
	replies := make([]Reply, len(calls))
	for i, result := range c.DoMulti(ctx, commands...) {
		message, err := result.ToMessage()
		if isNoScript(err) {
			replies[i] = s.Run(ctx, c, calls[i].Keys, calls[i].Args...)
		} else {
			replies[i] = s.reply(message, err)
		}
	}
	return replies
}

func isNoScript(err error) bool {
	refusal, ok := rueidis.IsRedisErr(err)
	return ok && refusal.IsNoScript()
}

func (s *Script) reply(message rueidis.RedisMessage, err error) Reply {
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return Reply{message: message, Err: s.explain(rediserr.Classify(err))}
}

// remembering is a client that remembers which scripts its server has executed.
type remembering struct {
	rueidis.Client
	// known has the scripts. They are few, and each command looks for one of them. A sync.Map would
	// take longer than all else that this package does for a command.
	known atomic.Pointer[[]*Script]
	mu    sync.Mutex // held while known is replaced
}

// remember records that the server has executed a script.
func (c *remembering) remember(s *Script) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := *c.known.Load(); !slices.Contains(known, s) {
		known = append(slices.Clone(known), s)
		c.known.Store(&known)
	}
}

// Remembering returns a client that sends the first use of each script on the connection that
// rueidis opens first. Otherwise rueidis might dial a second connection for the hash of the script,
// and a third connection for its source. On a cluster the slot decides about the connection, so
// Remembering returns c.
func Remembering(c rueidis.Client) rueidis.Client {
	if c.Mode() == rueidis.ClientModeCluster {
		return c
	}
	r := &remembering{Client: c}
	r.known.Store(new([]*Script))
	return r
}

// Follow implements follower if the inner client does.
func (c *remembering) Follow(ctx context.Context) bool {
	other, follows := c.Client.(follower)
	return follows && other.Follow(ctx)
}

// runFirst is send for the first use of a script. runFirst builds the commands with Arbitrary.
// rueidis treats such commands as commands without a key, and sends them on its first connection.
func (s *Script) runFirst(ctx context.Context, c *remembering, keys, args []string) Reply {
	do := func(command, what string) (rueidis.RedisMessage, error) {
		cmd := c.B().Arbitrary(command, what, strconv.Itoa(len(keys))).Args(keys...).Args(args...).Build()
		return c.Do(ctx, cmd.ToPipe()).ToMessage()
	}
	message, err := do("EVALSHA", s.text().sha1)
	if isNoScript(err) {
		message, err = do("EVAL", s.text().source)
	}
	rp := s.reply(message, err)
	if rp.Err == nil {
		c.remember(s)
	}
	return rp
}

// calledAt matches the line number of a script in an error message. called matches a command on
// such a line.
var (
	calledAt = regexp.MustCompile(`user_script: ?(\d+)`)
	called   = regexp.MustCompile(`(?:call|attempt)\('([A-Z]+)'`)
)

// explain completes the advice of an error for a command that a script may not call. Servers name
// the line of the command, not the command.
func (s *Script) explain(err error) error {
	if err == nil {
		return nil // before e is declared, because e costs an allocation
	}
	var e *rediserr.Error
	if !errors.As(err, &e) || e.Code != rediserr.NoCommand {
		return err
	}
	if at := calledAt.FindStringSubmatch(e.Message); at != nil {
		number, _ := strconv.Atoi(at[1])
		lines := strings.Split(s.text().source, "\n")
		line := lines[min(max(number, 1), len(lines))-1]
		if command := called.FindStringSubmatch(line); command != nil {
			rediserr.Advise(e, command[1])
		}
	}
	return err
}

// Reply reads the reply of a script, one value after the other. A Reply keeps the first error, and
// values read after that error mean nothing. A Reply is not safe for concurrent use.
type Reply struct {
	message rueidis.RedisMessage   // the whole reply
	values  []rueidis.RedisMessage // the unread values of the list
	Err     error                  // the first error
}

// Size returns the number of values if the reply is a list, and otherwise -1.
func (rp *Reply) Size() int {
	if !rp.message.IsArray() {
		return -1
	}
	values, _ := rp.message.ToArray() // cannot fail for a list
	return len(values)
}

// IsNil reports whether the whole reply is nil, without an error.
func (rp *Reply) IsNil() bool { return rp.Err == nil && rp.message.IsNil() }

// Is reports whether the whole reply is the integer n, without an error.
func (rp *Reply) Is(n int64) bool {
	number, err := rp.message.AsInt64()
	return rp.Err == nil && rp.message.IsInt64() && err == nil && number == n
}

// next returns the next value of the list, or the whole reply if the caller has entered no list.
func (rp *Reply) next() *rueidis.RedisMessage {
	value := &rp.message
	if len(rp.values) > 0 {
		value, rp.values = &rp.values[0], rp.values[1:]
	}
	return value
}

// Part returns the next value as a separate Reply.
func (rp *Reply) Part() Reply { return Reply{message: *rp.next(), Err: rp.Err} }

// List enters the next value and returns its size. The value must be a list with one of the given
// sizes.
func (rp *Reply) List(sizes ...int) int {
	values, err := rp.next().ToArray()
	rp.Keep(err)
	if !slices.Contains(sizes, len(values)) {
		rp.Keep(rediserr.Unexpected(fmt.Errorf("%d values instead of %d", len(values), sizes[0])))
	}
	rp.values = values
	return len(values)
}

// The readers call methods of the value directly, because a function value would allocate every
// reply.

// Integer reads an integer.
func (rp *Reply) Integer() int64 {
	n, err := rp.next().ToInt64()
	if err != nil {
		rp.Keep(err)
	}
	return n
}

// Decimal reads a number that may be a string. Scripts return strings because numbers in Lua are
// exact only up to 2^53.
func (rp *Reply) Decimal() int64 {
	n, err := rp.next().AsInt64()
	rp.Keep(err)
	return n
}

// Text reads a text.
func (rp *Reply) Text() string {
	text, err := rp.next().ToString()
	rp.Keep(err)
	return text
}

// Texts reads a list of texts. A score may be a number, as in scripts on Dragonfly.
func (rp *Reply) Texts() []string {
	value := rp.next()
	texts, err := value.AsStrSlice()
	rp.Keep(err)
	elements, _ := value.ToArray() // the error would be the same
	for i := range elements {
		if elements[i].IsInt64() {
			number, _ := elements[i].ToInt64() // cannot fail for an integer
			texts[i] = strconv.FormatInt(number, 10)
		}
	}
	return texts
}

// Boolean reads a value that must be 0 or 1.
func (rp *Reply) Boolean() bool {
	n := rp.Integer()
	if n != 0 && n != 1 {
		rp.Keep(rediserr.Unexpected(fmt.Errorf("%d instead of 0 or 1", n)))
	}
	return n == 1
}

// Keep keeps the first error.
func (rp *Reply) Keep(err error) {
	if err != nil && rp.Err == nil {
		rp.Err = rediserr.Classify(err)
	}
}
