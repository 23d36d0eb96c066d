package locks

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/identity"
	"holdfast/internal/rediserr"
	"holdfast/internal/survey"
	"holdfast/internal/transport"
)

// answerTime bounds the commands that are sent together, because rueidis would try for ever to
// reach a node that is down.
const answerTime = 5 * time.Second

const retryPause = 10 * time.Millisecond

// reader reads locks, and who their owners are.
type reader struct {
	redis     rueidis.Client
	transport *transport.Transport
	surveyor  *survey.Surveyor
	clients   map[string]Client // by id; of each that was asked for
}

func newReader(ctx context.Context, redis rueidis.Client) (*reader, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	t := transport.New(redis, transport.Options{})
	err := t.Ready(ctx)
	// On a cluster rueidis asks any node, also one that is down, and often the same one again.
	for err != nil && rediserr.ClassOf(err) == rediserr.ClassTemporary &&
		pause(ctx, retryPause) == nil {
		err = t.Ready(ctx)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return &reader{redis: redis, transport: t, clients: map[string]Client{},
		surveyor: survey.NewSurveyor(redis, t.Clustered())}, nil
}

func (r *reader) close() { r.transport.Close() }

// result is a lock, or why it could not be read.
type result struct {
	Lock
	err error // a *[rediserr.Error]
}

// read surveys locks, and asks who their owners are.
func (r *reader) read(ctx context.Context, names []string) []result {
	if len(names) == 0 {
		return nil
	}
	results := make([]result, len(names))
	for i, s := range r.surveyor.Survey(ctx, names...) {
		results[i] = result{convert(s), s.Err}
	}
	r.identify(ctx, results)
	return results
}

// convert returns a lock without the identity of its owners. Times are converted to our clock.
func convert(s survey.Survey) Lock {
	lock := Lock{Name: s.Name, Kind: s.Kind, TTL: s.TTL, Token: s.Token,
		MoreHolders: s.MoreHolds, MoreWaiters: s.MoreWaits, Subscribers: -1}
	for _, h := range s.Holds {
		mode := ""
		if h.Write {
			mode = "write"
		} else if s.Mode != "" {
			mode = "read"
		}
		lock.Holders = append(lock.Holders, Holder{Owner: h.Owner, Count: h.Count, Mode: mode,
			Client: Client{ID: clientOf(h.Owner)}})
	}
	ahead := time.Duration(0) // of the server's clock
	if !s.Clock.IsZero() {
		ahead = time.Until(s.Clock)
	}
	ours := func(t time.Time) time.Time {
		if t.IsZero() {
			return t
		}
		return t.Add(-ahead)
	}
	for _, w := range s.Waits {
		lock.Waiters = append(lock.Waiters, Waiter{Owner: w.Owner, Since: ours(w.Since),
			Until: ours(w.Until), Lease: w.Lease, Mode: w.Mode,
			Client: Client{ID: clientOf(w.Owner)}})
	}
	return lock
}

// clientOf returns the id of an owner's client.
func clientOf(owner string) string {
	client, _, _ := strings.Cut(owner, ":")
	return client
}

// lookups is how many identities are asked for at the same time. rueidis sends them together.
const lookups = 64

// identify notes who the owners are. It asks once for each client. Who may not be asked for, as the
// ACL forbids it, stays unknown.
func (r *reader) identify(ctx context.Context, locks []result) {
	var wanted []string
	each(locks, func(c *Client) {
		if _, known := r.clients[c.ID]; !known && c.ID != "" {
			r.clients[c.ID] = Client{ID: c.ID}
			wanted = append(wanted, c.ID)
		}
	})
	var mu sync.Mutex // guards clients
	var group sync.WaitGroup
	slots := make(chan struct{}, lookups)
	for _, id := range wanted {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if is, held, err := identity.ReadHold(ctx, r.redis, id); err == nil {
				mu.Lock()
				defer mu.Unlock()
				r.clients[id] = Client{ID: id, Identity: is, Held: held}
			}
		})
	}
	group.Wait()
	each(locks, func(c *Client) {
		if c.ID != "" {
			*c = r.clients[c.ID]
		}
	})
}

// each calls visit for the client of each owner.
func each(locks []result, visit func(*Client)) {
	for i := range locks {
		for j := range locks[i].Holders {
			visit(&locks[i].Holders[j].Client)
		}
		for j := range locks[i].Waiters {
			visit(&locks[i].Waiters[j].Client)
		}
	}
}
