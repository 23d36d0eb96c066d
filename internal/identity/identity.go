// Package identity records in Redis which process a client is, so that whoever looks at its locks
// can name the process.
package identity

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/printable"
	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// Identity is the process of a client, as recorded by the client; zero if the client recorded
// nothing.
type Identity struct {
	Program string
	Host    string
	PID     int
	Start   time.Time // of the process, by its own clock
	Label   string    // chosen by its user
}

// String returns a text that tells the process from others, such as "host web-1, pid 4711,
// nightly"; "" for zero. The text is safe to print, whatever the client recorded.
func (id Identity) String() string {
	var parts []string
	if id.Host != "" {
		parts = append(parts, "host "+printable.Short(id.Host))
	}
	if id.PID != 0 {
		parts = append(parts, "pid "+strconv.Itoa(id.PID))
	}
	if id.Label != "" {
		parts = append(parts, printable.Short(id.Label))
	}
	return strings.Join(parts, ", ")
}

// Note records for ttl who a client is. You may repeat Note.
func Note(ctx context.Context, c rueidis.CoreClient, client string, id Identity, ttl time.Duration,
) error {
	rp := lua.Script("identify.lua").Run(ctx, c, []string{wire.ClientKey(client)},
		strconv.FormatInt(ttl.Milliseconds(), 10),
		id.Program, id.Host, strconv.Itoa(id.PID), strconv.FormatInt(id.Start.UnixMilli(), 10),
		id.Label)
	rp.Boolean()
	return rp.Err
}

// Forget deletes what [Note] recorded.
func Forget(ctx context.Context, c rueidis.CoreClient, client string) error {
	return rediserr.Classify(c.Do(ctx, c.B().Del().Key(wire.ClientKey(client)).Build()).Error())
}

// heldField is the field that [NoteHold] adds.
const heldField = "held"

// NoteHold records for ttl since when a client holds its only lock. [Note] keeps that, and [Forget]
// deletes it. Programs with several locks cannot use NoteHold.
func NoteHold(ctx context.Context, c rueidis.CoreClient, client string, since time.Time,
	ttl time.Duration,
) error {
	key := wire.ClientKey(client)
	for _, reply := range c.DoMulti(ctx,
		c.B().Hset().Key(key).FieldValue().
			FieldValue(heldField, strconv.FormatInt(since.UnixMilli(), 10)).Build(),
		c.B().Pexpire().Key(key).Milliseconds(ttl.Milliseconds()).Build()) {
		if err := reply.Error(); err != nil {
			return rediserr.Classify(err)
		}
	}
	return nil
}

// Read returns who a client is, with texts of at most a few hundred bytes. Read ignores fields that
// it cannot parse.
func Read(ctx context.Context, c rueidis.CoreClient, client string) (Identity, error) {
	id, _, err := ReadHold(ctx, c, client)
	return id, err
}

// ReadHold is [Read], and also returns since when the client holds its only lock; zero if the
// client recorded no time with [NoteHold].
func ReadHold(ctx context.Context, c rueidis.CoreClient, client string,
) (id Identity, held time.Time, err error) {
	rp := lua.Script("identity.lua").Run(ctx, c, []string{wire.ClientKey(client)})
	texts := rp.Texts()
	if rp.Err != nil {
		return Identity{}, time.Time{}, rp.Err
	}
	fields := make(map[string]string)
	for i := 1; i < len(texts); i += 2 {
		fields[texts[i-1]] = texts[i]
	}
	id = Identity{Program: fields["program"], Host: fields["host"], Label: fields["label"]}
	if pid, err := strconv.Atoi(fields["pid"]); err == nil {
		id.PID = pid
	}
	if start, err := strconv.ParseInt(fields["start"], 10, 64); err == nil {
		id.Start = time.UnixMilli(start)
	}
	if since, err := strconv.ParseInt(fields[heldField], 10, 64); err == nil {
		held = time.UnixMilli(since)
	}
	return id, held, nil
}
