package once_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/once"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

const (
	key     = "payment:42"
	lock    = "once:payment:42"
	record  = "holdfast_once:{once:payment:42}"
	ttl     = time.Hour
	another = "somebody else's"
)

// bubble runs a test in virtual time on a server inside the test.
func bubble(t *testing.T, test func(t *testing.T, redis *rlocktest.Redis)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, rlocktest.New(t)) })
}

// raw returns a client for plain commands.
func raw(t *testing.T, redis *rlocktest.Redis) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(redis.ClientOption())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// counted returns a function that counts its runs and returns the number.
func counted(runs *atomic.Int64, takes time.Duration) func(context.Context) (int64, error) {
	return func(context.Context) (int64, error) {
		time.Sleep(takes)
		return runs.Add(1), nil
	}
}

// outcome is what a call in the background returned.
type outcome[T any] struct {
	result T
	err    error
}

// start calls Do in the background, and returns once nothing moves without time.
func start[T any](ctx context.Context, client *rlock.Client, fn func(context.Context) (T, error),
	options ...once.Option,
) <-chan outcome[T] {
	done := make(chan outcome[T], 1)
	go func() {
		result, err := once.Do(ctx, client, key, ttl, fn, options...)
		done <- outcome[T]{result, err}
	}()
	synctest.Wait()
	return done
}

func TestFunctionRunsOnceForCallersOfSeveralClients(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		var runs atomic.Int64
		var callers sync.WaitGroup
		for range 3 {
			client := redis.NewClient(rlock.Options{})
			for range 20 {
				callers.Go(func() {
					result, err := once.Do(t.Context(), client, key, ttl, counted(&runs, time.Minute))
					if err != nil || result != 1 {
						t.Errorf("result %d, error %v", result, err)
					}
				})
			}
		}
		callers.Wait()
		require.EqualValues(t, 1, runs.Load())
		began := time.Now()
		result, err := once.Do(t.Context(), redis.Client(), key, ttl, counted(&runs, time.Minute))
		require.NoError(t, err)
		require.EqualValues(t, 1, result, "a later caller")
		require.Zero(t, time.Since(began))
	})
}

func TestResultExpiresAndNothingIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		var runs atomic.Int64
		c := raw(t, redis)
		client := redis.NewClient(rlock.Options{Anonymous: true})
		keys := func() []string {
			found, err := c.Do(t.Context(), c.B().Keys().Pattern("*").Build()).AsStrSlice()
			require.NoError(t, err)
			return found
		}
		for want := range int64(2) {
			result, err := once.Do(t.Context(), client, key, ttl, counted(&runs, 0))
			require.NoError(t, err)
			require.Equal(t, want+1, result)
			require.Equal(t, []string{record}, keys())
			time.Sleep(ttl - time.Millisecond)
			require.Equal(t, []string{record}, keys())
			time.Sleep(time.Millisecond)
			require.Empty(t, keys())
		}

		_, err := once.Do(t.Context(), client, key, ttl,
			func(context.Context) (int, error) { return 0, errors.New("no") })
		require.EqualError(t, err, "no")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		running := start(t.Context(), client, counted(&runs, time.Minute))
		_, err = once.Do(ctx, redis.NewClient(rlock.Options{Anonymous: true}), key, ttl,
			counted(&runs, 0))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, (<-running).err)
		time.Sleep(ttl)
		require.Empty(t, keys())
	})
}

func TestFailedRunStoresNothingAndTheNextCallerRuns(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		no := errors.New("declined")
		fails := func(context.Context) (string, error) {
			time.Sleep(time.Second)
			return "partly", no
		}
		works := func(context.Context) (string, error) { return "done", nil }
		first := start(t.Context(), redis.Client(), fails)
		here := start(t.Context(), redis.Client(), fails)
		elsewhere := start(t.Context(), redis.NewClient(rlock.Options{}), works)
		got := <-first
		require.Equal(t, no, got.err, "unchanged")
		require.Equal(t, "partly", got.result)
		require.Equal(t, outcome[string]{"done", nil}, <-elsewhere)
		require.Equal(t, outcome[string]{"done", nil}, <-here, "without a run")
	})
}

func TestErrorOfTheFunctionNeverMatchesErrNotRun(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		inner := &rlock.LostError{Lock: "inner"}
		_, err := once.Do(t.Context(), redis.Client(), key, ttl, func(context.Context) (int, error) {
			return 0, errors.Join(rlock.ErrNotRun, inner)
		})
		require.NotErrorIs(t, err, rlock.ErrNotRun)
		require.ErrorIs(t, err, rlock.ErrLost)
		var lost *rlock.LostError
		require.ErrorAs(t, err, &lost)
		require.Contains(t, err.Error(), rlock.ErrNotRun.Error())
	})
}

func TestAnotherCallerTakesOverWhenTheRunnerLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		ctx, leave := context.WithCancel(t.Context())
		runner := start(ctx, redis.Client(), func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		other := start(t.Context(), redis.Client(), func(context.Context) (int, error) { return 7, nil })
		leave()
		require.ErrorIs(t, (<-runner).err, context.Canceled)
		require.Equal(t, outcome[int]{7, nil}, <-other)
	})
}

func TestWaitingCallersLeaveWithoutDisturbingTheRun(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		var runs atomic.Int64
		runner := start(t.Context(), redis.Client(), func(ctx context.Context) (int64, error) {
			time.Sleep(time.Minute)
			return runs.Add(1), ctx.Err()
		})
		for _, client := range []*rlock.Client{redis.Client(), redis.NewClient(rlock.Options{})} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("too slow"))
			got := <-start(ctx, client, counted(&runs, 0))
			cancel()
			require.ErrorIs(t, got.err, context.DeadlineExceeded)
			require.ErrorIs(t, got.err, rlock.ErrNotAcquired)
			require.ErrorIs(t, got.err, rlock.ErrNotRun)
			require.ErrorContains(t, got.err, "too slow")
		}
		require.Equal(t, outcome[int64]{1, nil}, <-runner)
	})
}

func TestNoWaitReturnsAtOnceWhileAnotherCallerRuns(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		var runs atomic.Int64
		runner := start(t.Context(), redis.Client(), counted(&runs, time.Minute))
		for _, client := range []*rlock.Client{redis.Client(), redis.NewClient(rlock.Options{})} {
			began := time.Now()
			got := <-start(t.Context(), client, counted(&runs, 0), once.NoWait())
			require.ErrorIs(t, got.err, rlock.ErrNotAcquired)
			require.ErrorIs(t, got.err, rlock.ErrNotRun)
			require.Zero(t, time.Since(began))
		}
		require.NoError(t, (<-runner).err)

		// Another caller of the client that only asks for a stored result is not a run.
		redis.Slow(10 * time.Millisecond)
		asking := start(t.Context(), redis.Client(), counted(&runs, 0))
		got := <-start(t.Context(), redis.Client(), counted(&runs, 0), once.NoWait())
		require.Equal(t, outcome[int64]{1, nil}, got)
		require.Equal(t, outcome[int64]{1, nil}, <-asking)
		require.EqualValues(t, 1, runs.Load())
	})
}

func TestAnotherRequestUnderTheKeyIsRejected(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		var runs atomic.Int64
		a, b := once.Fingerprint([]byte("pay 5")), once.Fingerprint([]byte("pay 6"))
		runner := start(t.Context(), redis.Client(), counted(&runs, time.Second), a)
		waiting := start(t.Context(), redis.Client(), counted(&runs, 0), b)
		elsewhere := start(t.Context(), redis.NewClient(rlock.Options{}), counted(&runs, 0), b)
		require.Equal(t, outcome[int64]{1, nil}, <-runner)
		for _, got := range []outcome[int64]{<-waiting, <-elsewhere,
			<-start(t.Context(), redis.Client(), counted(&runs, 0), b)} {
			require.ErrorIs(t, got.err, once.ErrMismatch)
			require.ErrorIs(t, got.err, rlock.ErrNotRun)
		}
		for _, options := range [][]once.Option{{a}, nil} {
			require.Equal(t, outcome[int64]{1, nil},
				<-start(t.Context(), redis.Client(), counted(&runs, 0), options...))
		}
		time.Sleep(ttl)
		for _, options := range [][]once.Option{nil, {a}} {
			require.Equal(t, outcome[int64]{2, nil},
				<-start(t.Context(), redis.Client(), counted(&runs, 0), options...))
		}
	})
}

// A run that lost its lock returns what another run has stored, and its own result only with an
// error.
func TestRunThatLostItsLockStoresNothing(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		proceed, ended := make(chan bool), make(chan error, 3)
		slow := func(ctx context.Context) (string, error) {
			<-proceed
			ended <- context.Cause(ctx)
			return "late", nil
		}
		runner := start(t.Context(), redis.Client(), slow)
		redis.Lose(lock)
		proceed <- true
		got := <-runner
		require.ErrorIs(t, <-ended, rlock.ErrLost)
		require.ErrorIs(t, got.err, once.ErrNotRecorded)
		require.ErrorIs(t, got.err, rlock.ErrLost)
		require.NotErrorIs(t, got.err, rlock.ErrNotRun)
		require.Equal(t, "late", got.result)

		runner = start(t.Context(), redis.Client(), slow)
		redis.Lose(lock)
		first := func(context.Context) (string, error) { return "first", nil }
		require.Equal(t, outcome[string]{"first", nil},
			<-start(t.Context(), redis.NewClient(rlock.Options{}), first))
		proceed <- true
		require.Equal(t, outcome[string]{"first", nil}, <-runner)

		runner = start(t.Context(), redis.NewClient(rlock.Options{}), slow)
		require.Equal(t, outcome[string]{"first", nil}, <-runner, "stored")
		time.Sleep(ttl)
		runner = start(t.Context(), redis.Client(), slow, once.Fingerprint([]byte("a")))
		redis.Lose(lock)
		require.NoError(t, (<-start(t.Context(), redis.NewClient(rlock.Options{}), first,
			once.Fingerprint([]byte("b")))).err)
		proceed <- true
		got = <-runner
		require.ErrorIs(t, got.err, once.ErrMismatch)
		require.ErrorIs(t, got.err, once.ErrNotRecorded)
		require.NotErrorIs(t, got.err, rlock.ErrNotRun)
	})
}

func TestFailedRunReportsThatItsLockWasLost(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		no := errors.New("no")
		_, err := once.Do(t.Context(), redis.Client(), key, ttl, func(context.Context) (int, error) {
			redis.Lose(lock)
			return 0, no
		})
		require.ErrorIs(t, err, no)
		require.ErrorIs(t, err, rlock.ErrLost)
	})
}

func TestLockLostBeforeTheRunBegins(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		c := raw(t, redis)
		var sent atomic.Int64
		client, err := rlock.New(counting{c, &sent, func(n int64) {
			if n == 3 { // after the look and the acquisition
				require.NoError(t, c.Do(t.Context(), c.B().Del().Key(lock).Build()).Error())
			}
		}}, rlock.Options{Anonymous: true})
		require.NoError(t, err)
		defer client.Close(t.Context()) //nolint:errcheck // ends with the test
		_, err = once.Do(t.Context(), client, "loads the scripts", ttl, counted(new(atomic.Int64), 0))
		require.NoError(t, err)
		sent.Store(0)
		_, err = once.Do(t.Context(), client, key, ttl,
			func(context.Context) (int, error) { panic("runs") })
		require.ErrorIs(t, err, rlock.ErrLost)
		require.ErrorIs(t, err, rlock.ErrNotRun)
	})
}

// The client has not noticed yet that Redis lost the lock, and a later run has begun.
func TestStoreChecksTheLockInRedis(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		proceed := make(chan bool)
		c, client := raw(t, redis), redis.NewClient(rlock.Options{})
		runner := start(t.Context(), client, func(context.Context) (string, error) {
			<-proceed
			return "late", nil
		})
		require.NoError(t, c.Do(t.Context(), c.B().Del().Key(lock).Build()).Error())
		later := start(t.Context(), redis.Client(), func(context.Context) (string, error) {
			<-proceed
			return "first", nil
		})
		proceed <- true
		got := <-runner
		require.ErrorIs(t, got.err, once.ErrNotRecorded)
		require.ErrorIs(t, got.err, rlock.ErrLost)
		proceed <- true
		require.Equal(t, outcome[string]{"first", nil}, <-later)
	})
}

func TestTokensGrowEvenAfterTheKeyHasExpired(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		require.Zero(t, once.Token(t.Context()))
		fails := func(ctx context.Context) (int64, error) { return once.Token(ctx), errors.New("no") }
		last := int64(0)
		for range 3 {
			token, _ := once.Do(t.Context(), redis.Client(), key, ttl, fails)
			require.Greater(t, token, last)
			last = token
			time.Sleep(time.Microsecond)
		}
		time.Sleep(ttl)
		token, _ := once.Do(t.Context(), redis.Client(), key, ttl, fails)
		require.Greater(t, token, last)

		// The clock of the server was set back.
		c := raw(t, redis)
		set := c.B().Set().Key(record).Value("9000000000000000 earlier").Build()
		require.NoError(t, c.Do(t.Context(), set).Error())
		token, _ = once.Do(t.Context(), redis.Client(), key, ttl, fails)
		require.EqualValues(t, 9000000000000001, token)
	})
}

func TestRunMayTakeLongerThanTheLifetimeOfItsResult(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		var runs atomic.Int64
		for range 2 {
			result, err := once.Do(t.Context(), redis.Client(), key, time.Minute,
				counted(&runs, time.Hour))
			require.NoError(t, err)
			require.EqualValues(t, 1, result)
		}
	})
}

func TestStoreIsRepeatedUntilItsOutcomeIsKnown(t *testing.T) {
	for name, trouble := range map[string]func(*rlocktest.Redis){
		"no reply": func(r *rlocktest.Redis) {
			r.Slow(time.Hour)
			time.AfterFunc(8*time.Second, func() { r.Slow(0) })
		},
		"down": func(r *rlocktest.Redis) {
			r.Down()
			time.AfterFunc(8*time.Second, r.Up)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
				var runs atomic.Int64
				for range 2 {
					result, err := once.Do(t.Context(), redis.Client(), key, ttl,
						func(context.Context) (int64, error) {
							trouble(redis)
							return runs.Add(1), nil
						})
					require.NoError(t, err)
					require.EqualValues(t, 1, result)
				}
			})
		})
	}
}

func TestResultIsStoredEvenIfTheCallerHasLeft(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		var runs atomic.Int64
		ctx, leave := context.WithCancel(t.Context())
		result, err := once.Do(ctx, redis.Client(), key, ttl, func(context.Context) (int64, error) {
			leave()
			return runs.Add(1), nil
		})
		require.NoError(t, err)
		require.EqualValues(t, 1, result)
		require.Equal(t, outcome[int64]{1, nil}, <-start(t.Context(), redis.Client(), counted(&runs, 0)))
	})
}

func TestUnrecordedResultSaysWhy(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		redis.Allow(rlocktest.Holds) // the lock cannot be released either
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		result, err := once.Do(ctx, redis.Client(), key, ttl, func(context.Context) (int, error) {
			redis.Down()
			return 7, nil
		})
		require.ErrorIs(t, err, once.ErrNotRecorded)
		var server *rlock.ServerError
		require.ErrorAs(t, err, &server)
		require.NotErrorIs(t, err, rlock.ErrNotRun)
		require.Equal(t, 7, result)
		// After ctx, one attempt to store the result and one to release the lock.
		require.LessOrEqual(t, time.Since(began), time.Second+2*3*time.Second)
	})
}

func TestCallWithoutAServerWaitsUntilItsContextEnds(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		var runs atomic.Int64
		redis.Down()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := once.Do(ctx, redis.Client(), key, ttl, counted(&runs, 0))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, rlock.ErrNotRun)
		var server *rlock.ServerError
		require.ErrorAs(t, err, &server)

		time.AfterFunc(time.Minute, redis.Up)
		result, err := once.Do(t.Context(), redis.Client(), key, ttl, counted(&runs, 0))
		require.NoError(t, err)
		require.EqualValues(t, 1, result)
	})
}

func TestRejectedCommandComesThrough(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		c := raw(t, redis)
		for _, command := range [][]string{{"SET", record, another}, {"HSET", record, "a", "b"}} {
			require.NoError(t, c.Do(t.Context(), c.B().Del().Key(record).Build()).Error())
			require.NoError(t, c.Do(t.Context(), c.B().Arbitrary(command...).Build()).Error())
			_, err := once.Do(t.Context(), redis.Client(), key, ttl,
				func(context.Context) (int, error) { panic("runs") })
			var server *rlock.ServerError
			require.ErrorAs(t, err, &server)
			require.Equal(t, rlock.ClassPermanent, server.Class)
			require.ErrorIs(t, err, rlock.ErrNotRun)
		}
	})
}

func TestFunctionThatPanicsReleasesTheKey(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		require.PanicsWithValue(t, "no", func() {
			_, _ = once.Do(t.Context(), redis.Client(), key, ttl,
				func(context.Context) (int, error) { panic("no") })
		})
		var runs atomic.Int64
		result, err := once.Do(t.Context(), redis.Client(), key, ttl, counted(&runs, 0))
		require.NoError(t, err)
		require.EqualValues(t, 1, result)
	})
}

func TestFunctionThatCallsDoWithItsOwnKeyGetsADeadlock(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		client := redis.Client()
		_, err := once.Do(t.Context(), client, key, ttl, func(ctx context.Context) (int, error) {
			return once.Do(ctx, client, "payment:43", ttl, func(ctx context.Context) (int, error) {
				return once.Do(ctx, client, key, ttl, func(context.Context) (int, error) { return 1, nil })
			})
		})
		require.ErrorIs(t, err, rlock.ErrDeadlock)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
	})
}

func TestResultsAreEqualForAllCallers(t *testing.T) {
	type receipt struct {
		Amount int
		secret string
	}
	encode := func(v any) ([]byte, error) {
		var b bytes.Buffer
		err := gob.NewEncoder(&b).Encode(v)
		return b.Bytes(), err
	}
	decode := func(data []byte, v any) error {
		return gob.NewDecoder(bytes.NewReader(data)).Decode(v)
	}
	for name, options := range map[string][]once.Option{
		"JSON": nil, "codec": {once.Codec(encode, decode)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
				for range 2 {
					result, err := once.Do(t.Context(), redis.Client(), key, ttl,
						func(context.Context) (receipt, error) { return receipt{5, "lost"}, nil }, options...)
					require.NoError(t, err)
					require.Equal(t, receipt{Amount: 5}, result)
				}
				_, err := once.Do(t.Context(), redis.Client(), key, ttl,
					func(context.Context) ([]int, error) { panic("runs") }, options...)
				require.ErrorContains(t, err, "one type only")
				require.ErrorIs(t, err, rlock.ErrNotRun)
			})
		})
	}
	t.Run("bytes", func(t *testing.T) {
		bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
			data := []byte("a \x00\xff b ")
			for range 2 {
				result, err := once.Do(t.Context(), redis.Client(), key, ttl,
					func(context.Context) ([]byte, error) { return data, nil })
				require.NoError(t, err)
				require.Equal(t, data, result)
				result[0] = 'x' // its own copy
			}
		})
	})
	t.Run("no JSON", func(t *testing.T) {
		bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
			_, err := once.Do(t.Context(), redis.Client(), key, ttl,
				func(context.Context) (func(), error) { return func() {}, nil })
			require.ErrorIs(t, err, once.ErrNotRecorded)
			require.NotErrorIs(t, err, rlock.ErrNotRun)
		})
	})
}

func TestArgumentsThatCannotWorkAreInvalid(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		fn := func(context.Context) (int, error) { panic("runs") }
		_, err := once.Do(t.Context(), nil, key, ttl, fn)
		require.ErrorIs(t, err, rlock.ErrInvalid)
		_, err = once.Do(t.Context(), redis.Client(), "", ttl, fn)
		require.ErrorIs(t, err, rlock.ErrInvalid)
		_, err = once.Do(t.Context(), redis.Client(), key, time.Millisecond-1, fn)
		require.ErrorIs(t, err, rlock.ErrInvalid)
		require.ErrorIs(t, err, rlock.ErrNotRun)
	})
}

func TestNameMapperAppliesToKeys(t *testing.T) {
	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		client := redis.NewClient(rlock.Options{NameMapper: rlock.Prefix("app:")})
		var runs atomic.Int64
		_, err := once.Do(t.Context(), client, key, ttl, counted(&runs, 0))
		require.NoError(t, err)
		c := raw(t, redis)
		n, err := c.Do(t.Context(), c.B().Exists().Key("holdfast_once:{app:once:payment:42}").Build()).
			AsInt64()
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
	})
}
