package demo

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

// transfer moves 1 from the first account to the second in the way that needs both locks: it reads
// both balances, and takes its time before it writes each. It returns the sum of the balances that
// it read. No complete transfer changes the sum, but one that is read halfway does. An untouched
// account has 0.
func (w *worker) transfer(ctx context.Context) (sum int64, err error) {
	reading, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	var found []int64
	for _, account := range w.part.Accounts {
		balance, err := w.redis.Do(reading,
			w.redis.B().Get().Key(balanceKey(w.part.Prefix, account)).Build()).AsInt64()
		if err != nil && !rueidis.IsRedisNil(err) {
			return 0, fmt.Errorf("read the balance of %s: %w", account, err)
		}
		found = append(found, balance)
		sum += balance
	}
	for i, change := range []int64{-1, 1} {
		if err := w.think(ctx); err != nil {
			return 0, err
		}
		key := balanceKey(w.part.Prefix, w.part.Accounts[i])
		balance := strconv.FormatInt(found[i]+change, 10)
		if err := w.redis.Do(ctx,
			w.redis.B().Set().Key(key).Value(balance).Ex(keyLife).Build()).Error(); err != nil {
			return 0, fmt.Errorf("write the balance of %s: %w", w.part.Accounts[i], err)
		}
	}
	return sum, nil
}
