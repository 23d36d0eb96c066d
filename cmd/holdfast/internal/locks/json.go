package locks

import (
	"encoding/json"
	"time"

	"holdfast/internal/printable"
	"holdfast/internal/survey"
	"holdfast/internal/wire"
)

// MarshalJSON returns the lock as one object. Fields that are not known are left out.
func (l Lock) MarshalJSON() ([]byte, error) {
	object := lockJSON{Name: l.Name, Kind: l.Kind, Holders: []holderJSON{}, Waiters: []waiterJSON{},
		MoreHolders: l.MoreHolders, MoreWaiters: l.MoreWaiters, TTL: milliseconds(l.TTL),
		Token: l.Token, Node: l.Node}
	for _, h := range l.Holders {
		object.Holders = append(object.Holders,
			holderJSON{h.Owner, h.Count, h.Mode, newTime(h.Client.Held), newClientJSON(h.Client)})
	}
	for _, w := range l.Waiters {
		object.Waiters = append(object.Waiters, waiterJSON{w.Owner, newTime(w.Since),
			newTime(w.Until), milliseconds(w.Lease), w.Mode, newClientJSON(w.Client)})
	}
	if l.Node != "" {
		slot := wire.Slot(l.Name)
		object.Slot = &slot
	}
	if l.Subscribers >= 0 {
		object.Subscribers = &l.Subscribers
	}
	return marshal(object)
}

// marshal returns an object in JSON that is safe to print.
func marshal(object any) ([]byte, error) {
	document, err := json.Marshal(object)
	return printable.JSON(document), err
}

type lockJSON struct {
	Name        string       `json:"name"`
	Kind        survey.Kind  `json:"kind"`
	Holders     []holderJSON `json:"holders"`
	MoreHolders int          `json:"more_holders,omitempty"`
	Waiters     []waiterJSON `json:"waiters"`
	MoreWaiters int          `json:"more_waiters,omitempty"`
	TTL         int64        `json:"ttl_ms"`
	Token       int64        `json:"token,omitempty"`
	Subscribers *int         `json:"subscribers,omitempty"`
	Node        string       `json:"node,omitempty"`
	Slot        *uint16      `json:"slot,omitempty"`
}

type holderJSON struct {
	Owner  string      `json:"owner"`
	Count  int         `json:"count"`
	Mode   string      `json:"mode,omitempty"`
	Since  *time.Time  `json:"since,omitempty"`
	Client *clientJSON `json:"client,omitempty"`
}

type waiterJSON struct {
	Owner  string      `json:"owner,omitempty"`
	Since  *time.Time  `json:"since,omitempty"`
	Until  *time.Time  `json:"until,omitempty"`
	Lease  int64       `json:"lease_ms,omitempty"`
	Mode   string      `json:"mode,omitempty"`
	Client *clientJSON `json:"client,omitempty"`
}

type clientJSON struct {
	Program string     `json:"program,omitempty"`
	Host    string     `json:"host,omitempty"`
	PID     int        `json:"pid,omitempty"`
	Start   *time.Time `json:"start,omitempty"`
	Label   string     `json:"label,omitempty"`
}

// newClientJSON returns nil for a client that is not known.
func newClientJSON(c Client) *clientJSON {
	if !c.Known() {
		return nil
	}
	return &clientJSON{c.Program, c.Host, c.PID, newTime(c.Start), c.Label}
}

// newTime returns nil for a time that is not known, or that JSON cannot have: anybody may have
// written it.
func newTime(t time.Time) *time.Time {
	t = t.UTC().Truncate(time.Millisecond)
	if t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return nil
	}
	return &t
}

// milliseconds returns -1 for a lease that never ends.
func milliseconds(d time.Duration) int64 {
	if d == wire.NoExpiry {
		return -1
	}
	return d.Milliseconds()
}

// MarshalJSON returns the circle as one object, with what to unlock.
func (c Cycle) MarshalJSON() ([]byte, error) {
	object := cycleJSON{Certain: c.Certain}
	for _, w := range c.Waits {
		object.Waits = append(object.Waits, waitJSON{
			partyJSON{w.Waiter.Owner, newClientJSON(w.Waiter.Client)}, w.Lock,
			partyJSON{w.Holder.Owner, newClientJSON(w.Holder.Client)}})
	}
	object.Unlock.Name, object.Unlock.Owner = c.Waits[0].Lock, c.Waits[0].Holder.Owner
	return marshal(object)
}

type cycleJSON struct {
	Certain bool       `json:"certain"`
	Waits   []waitJSON `json:"waits"`
	Unlock  struct {
		Name  string `json:"name"`
		Owner string `json:"owner"`
	} `json:"unlock"`
}

type waitJSON struct {
	Waiter partyJSON `json:"waiter"`
	Lock   string    `json:"lock"`
	Holder partyJSON `json:"holder"`
}

type partyJSON struct {
	Owner  string      `json:"owner"`
	Client *clientJSON `json:"client,omitempty"`
}
