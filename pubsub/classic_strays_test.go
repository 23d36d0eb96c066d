package pubsub

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// When many slots move, many channels leave a connection at once. Each exchange has replyTimeout,
// so their classic channels take several of them, as all others do.
func TestClassicChannelsThatAreLeftBehindTakeExchangesOfLimitedSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newMirrored(t)
		_, conn := started(t, h, f)
		const moving = 1000
		names := make([]string, moving)
		for i := range names {
			names[i] = fmt.Sprint(strings.Repeat("x", 100), i)
			h.Subscribe(Topic{Channel: names[i]})
		}
		for asked := 0; asked < moving; {
			r := f.next(t, "subscribe")
			asked += len(r.groups)
			r.accept()
		}
		synctest.Wait()
		f.set(func() { f.node = "other" })
		for _, name := range names {
			conn.hooks.OnSubscription(rueidis.PubSubSubscription{Kind: "sunsubscribe", Channel: name})
		}
		for left := moving; left > 0; {
			r := <-f.requests
			if r.verb == "unsubscribe" {
				size := 0
				for _, group := range r.classic {
					size += len(strings.Join(group, ""))
				}
				require.Less(t, size, mostBytes+1000, "%d channels in one exchange", len(r.classic))
				left -= len(r.classic)
			}
			r.accept()
		}
	})
}
