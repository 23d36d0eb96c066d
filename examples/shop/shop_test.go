package main

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

func TestMain(m *testing.M) {
	locktest.Main(m, map[string]func(args []string) error{
		"shop": func(args []string) error {
			return untilTold(args, os.Stdin, os.Stdout)
		},
	})
}

// memory has the numbers of a shop in a test.
type memory struct {
	mu      sync.Mutex
	numbers map[string]int64 // guarded by mu
	onSet   func(key string) // called before a number is written, if it is not nil
}

func (m *memory) Get(ctx context.Context, key string) (int64, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.numbers[key], nil
}

func (m *memory) Set(ctx context.Context, key string, value int64) error {
	if m.onSet != nil {
		m.onSet(key)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.numbers[key] = value
	return nil
}

// newShop returns a shop with a Redis and data of its own. The Redis fails the test if the shop
// keeps a lock.
func newShop(t *testing.T, numbers map[string]int64) (*Shop, *rlocktest.Redis, *memory) {
	t.Helper()
	redis := rlocktest.New(t)
	data := &memory{numbers: numbers}
	return New(redis.Client(), data), redis, data
}

func TestLockNamesAreThoseOfLock4j(t *testing.T) {
	// Read from lock4j-core 2.2.7; the test beside Java proves the one that the shop uses.
	keys := func(in string) []string { return []string{in, "x"} }
	require.Equal(t, "lock4j:com.acme.Pointsadd#ada.x",
		Lock4j[string]{Method: "com.acme.Pointsadd", Keys: keys}.LockName("ada"))
	require.Equal(t, "lock4j:points#ada.x",
		Lock4j[string]{Name: "points", Method: "com.acme.Pointsadd", Keys: keys}.LockName("ada"))
	require.Equal(t, "lock4j:points#", Lock4j[string]{Name: "points"}.LockName("ada"))
}

func TestWrappedFunctionRunsUnderItsLock(t *testing.T) {
	t.Parallel()
	shop, redis, _ := newShop(t, map[string]int64{})
	setting := Lock4j[string]{Name: "greet", Expire: rlock.Lease(time.Minute)}
	greet := Wrap(redis.Client(), setting, func(ctx context.Context, in string) (string, error) {
		held, err := redis.Client().NewLock("lock4j:greet#").IsHeld(ctx)
		require.NoError(t, err)
		require.True(t, held)
		return "hello " + in, nil
	})
	greeting, err := greet(t.Context(), "ada")
	require.NoError(t, err)
	require.Equal(t, "hello ada", greeting)

	points, err := shop.AddPoints(t.Context(), Award{Customer: "ada", Points: 3})
	require.NoError(t, err)
	require.EqualValues(t, 3, points)
}

func TestRepackTurnsOneArticleIntoAnother(t *testing.T) {
	t.Parallel()
	shop, _, data := newShop(t, map[string]int64{"stock:pen": 3})
	require.NoError(t, shop.Repack(t.Context(), "pen", "cup", 2))
	require.ErrorIs(t, shop.Repack(t.Context(), "pen", "cup", 2), ErrSoldOut)
	require.Equal(t, map[string]int64{"stock:pen": 1, "stock:cup": 2}, data.numbers)
}

func TestReserveMovesWhatIsInStockToWhatIsSold(t *testing.T) {
	t.Parallel()
	shop, _, data := newShop(t, map[string]int64{"stock:cup": 3})
	require.NoError(t, shop.Reserve(t.Context(), "cup", 2))
	require.ErrorIs(t, shop.Reserve(t.Context(), "cup", 2), ErrSoldOut)
	require.Equal(t, map[string]int64{"stock:cup": 1, "sold:cup": 2}, data.numbers)
}

func TestReserveStopsWhenItsLockIsLost(t *testing.T) {
	t.Parallel()
	shop, redis, data := newShop(t, map[string]int64{"stock:cup": 1})
	data.onSet = func(string) {
		data.onSet = nil
		redis.Lose("shop:sku:cup")
	}
	require.ErrorIs(t, shop.Reserve(t.Context(), "cup", 1), rlock.ErrLost)
	require.Equal(t, map[string]int64{"stock:cup": 1}, data.numbers, "wrote without its lock")
}

func TestWorkersShareTheStockAndTheNights(t *testing.T) {
	t.Parallel()
	const workers, rounds = 3, 6
	shop, _, data := newShop(t, map[string]int64{"stock:book": 8, "stock:pen": 8, "stock:cup": 8})
	r, err := work(t.Context(), shop, workers, rounds)
	require.NoError(t, err)
	require.Equal(t, workers*rounds/raisesANight, r["nights"])
	require.Zero(t, r["inconsistent"])
	require.EqualValues(t, workers*rounds, data.numbers["points:ada"])
	require.EqualValues(t, workers*rounds, data.numbers["price:net"])
	var stock, sold int64
	for _, sku := range skus {
		stock += data.numbers["stock:"+sku]
		sold += data.numbers["sold:"+sku]
	}
	require.EqualValues(t, r["reserved"], sold)
	require.EqualValues(t, 24, stock+sold)
}
