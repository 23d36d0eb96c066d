package lua_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// preferring is pair with precedence for writers that wait.
var preferring = lua.ReadWrite{Lock: lock, Bound: time.Minute}

// This library's own keys beside a read-write lock.
const (
	writerKey = "holdfast_rwlock_writer:{order:42}"
	readerKey = "holdfast_rwlock_reader:{order:42}"
	passKey   = "holdfast_rwlock_turn:{order:42}"
)

const (
	reader = "a7c1:1"
	writer = "b8d2:2"
)

// waitingReaders returns a lock that other reads and writer waits for.
func waitingReaders(t *testing.T) (*redistest.Server, client) {
	t.Helper()
	s, c := start(t)
	read(t, c, other, 1, lease)
	refuse(t, preferring.AcquireWrite, c, writer)
	return s, c
}

type acquire func(context.Context, client, string, int, time.Duration, bool) (*lua.Holder, error)

// asReader acquires as a new reader, and asThatWaited as one that was refused before.
func asReader(pair lua.ReadWrite) acquire {
	return func(
		ctx context.Context, c client, owner string, number int, lease time.Duration, waits bool,
	) (*lua.Holder, error) {
		return pair.AcquireRead(ctx, c, owner, number, lease, waits, false)
	}
}

func asThatWaited(pair lua.ReadWrite) acquire {
	return func(
		ctx context.Context, c client, owner string, number int, lease time.Duration, waits bool,
	) (*lua.Holder, error) {
		return pair.AcquireRead(ctx, c, owner, number, lease, waits, true)
	}
}

// refuse has owner wait for the lock, and returns the holder.
func refuse(t *testing.T, as acquire, c client, owner string) *lua.Holder {
	t.Helper()
	holder, err := as(t.Context(), c, owner, 1, lease, true)
	require.NoError(t, err)
	require.NotNil(t, holder)
	return holder
}

// grants has owner get the lock.
func grants(t *testing.T, as acquire, c client, owner string) {
	t.Helper()
	holder, err := as(t.Context(), c, owner, 1, lease, true)
	require.NoError(t, err)
	require.Nil(t, holder)
}

// waitingSince makes it look as if writer had begun to wait that long ago, and had asked again half
// a second ago if it is longer.
func waitingSince(t *testing.T, s *redistest.Server, ago time.Duration) {
	t.Helper()
	asked := min(ago, 500*time.Millisecond)
	s.Do(t, "SET", writerKey, fmt.Sprintf("%d %s:write", (ago-asked).Milliseconds(), writer),
		"PX", ms(7*time.Second-asked))
}

func TestNewReaderStepsBackForAWriterThatWaits(t *testing.T) {
	s, c := waitingReaders(t)
	for _, waits := range []bool{true, false} {
		holder, err := preferring.AcquireRead(t.Context(), c, reader, 1, lease, waits, false)
		require.NoError(t, err)
		require.Equal(t, writer, holder.Owner)
		require.True(t, holder.Next)
		require.Greater(t, holder.Nap, time.Second)
		require.LessOrEqual(t, holder.Nap, 7*time.Second, "a writer that died is forgotten by then")
	}
	requireLock(t, s, lock, map[string]string{"mode": "read", other: "1"}, lease)
	requireTTL(t, s, writerKey, 7*time.Second)

	// Not even when the lock is free: the writer has been told, and is about to ask.
	_, err := preferring.ReleaseRead(t.Context(), c, other, 0)
	require.NoError(t, err)
	require.True(t, refuse(t, asReader(preferring), c, reader).Next)
	requireFree(t, s, lock)
}

func TestReaderThatHoldsIsNotHeldBack(t *testing.T) {
	s, c := waitingReaders(t)
	reentered, err := lua.Reenter(t.Context(), c,
		lua.Held{Lock: preferring.Lock, Owner: other, Read: true}, 2, lease)
	require.NoError(t, err)
	require.True(t, reentered)
	grants(t, asReader(preferring), c, other) // nor is a retry a new reader
	requireLock(t, s, lock, map[string]string{"mode": "read", other: "1"}, lease)
}

func TestWriterThatReadsIsNotHeldBackByTheNextWriter(t *testing.T) {
	s, c := waitingReaders(t)
	s.Do(t, "DEL", lock, holdKey(other, 1))
	s.Do(t, "HSET", lock, "mode", "write", me+":write", "1")
	s.Do(t, "PEXPIRE", lock, ms(lease))
	grants(t, asReader(preferring), c, me)
	out, err := preferring.ReleaseWrite(t.Context(), c, me, 0, "", 0)
	require.NoError(t, err)
	require.True(t, out.Reading)
	require.Equal(t, writer, refuse(t, asReader(preferring), c, reader).Owner)
}

func TestReaderWithoutPreferenceIsNotHeldBack(t *testing.T) {
	s, c := waitingReaders(t)
	grants(t, asReader(pair), c, reader)
	requireLock(t, s, lock, map[string]string{"mode": "read", other: "1", reader: "1"}, lease)
}

func TestLockHasNoOwnKeysWithoutPreference(t *testing.T) {
	s, c := start(t)
	grants(t, asReader(pair), c, other)
	refuse(t, pair.AcquireWrite, c, writer)
	_, err := pair.ReleaseWrite(t.Context(), c, writer, 0, "", 0) // the writer gives up
	require.NoError(t, err)
	requireKeys(t, s, lock, holdKey(other, 1))
	_, err = pair.ReleaseRead(t.Context(), c, other, 0)
	require.NoError(t, err)
	grants(t, pair.AcquireWrite, c, writer)
	refuse(t, asReader(pair), c, reader)
	requireKeys(t, s, lock)
	_, err = pair.ReleaseWrite(t.Context(), c, writer, 0, "", 0)
	require.NoError(t, err)
	requireKeys(t, s)
}

func TestAttemptWithoutWaitHoldsNoReaderBack(t *testing.T) {
	s, c := start(t)
	read(t, c, other, 1, lease)
	holder, err := preferring.AcquireWrite(t.Context(), c, writer, 1, lease, false)
	require.NoError(t, err)
	require.NotNil(t, holder)
	requireKeys(t, s, lock, holdKey(other, 1))
	_, err = preferring.ReleaseRead(t.Context(), c, other, 0)
	require.NoError(t, err)
	write(t, c, writer, lease)
	holder, err = preferring.AcquireRead(t.Context(), c, reader, 1, lease, false, false)
	require.NoError(t, err)
	require.NotNil(t, holder)
	requireKeys(t, s, lock)
}

func TestWriterBehindAWriterHoldsNoReaderBack(t *testing.T) {
	s, c := start(t)
	write(t, c, other, lease)
	refuse(t, preferring.AcquireWrite, c, writer)
	requireKeys(t, s, lock)
}

func TestReadersPassAWriterThatHasHeldThemBackForLong(t *testing.T) {
	s, c := waitingReaders(t)
	bound := preferring.Bound
	waitingSince(t, s, bound-2*time.Second)
	nap := refuse(t, asReader(preferring), c, reader).Nap
	require.LessOrEqual(t, nap, 2*time.Second, "it must ask again when it may pass")

	waitingSince(t, s, bound+bound/20)
	refuse(t, preferring.AcquireWrite, c, writer) // a retry does not renew its precedence
	grants(t, asReader(preferring), c, reader)

	// A tenth of that time later the writer has precedence again.
	waitingSince(t, s, bound+bound/5)
	grants(t, asReader(preferring), c, "third:3")
	refuse(t, preferring.AcquireWrite, c, writer)
	require.Equal(t, writer, refuse(t, asReader(preferring), c, "fourth:4").Owner)
}

func TestSecondWriterDoesNotTakeOverThePrecedenceOfTheFirst(t *testing.T) {
	s, c := waitingReaders(t)
	waitingSince(t, s, 20*time.Second)
	before := s.DoString(t, "GET", writerKey)
	refuse(t, preferring.AcquireWrite, c, me)
	require.Equal(t, before, s.DoString(t, "GET", writerKey),
		"two writers in turn would hold readers back for ever")
	sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
	_, err := preferring.ReleaseWrite(t.Context(), c, me, 0, "", 0)
	require.NoError(t, err)
	require.Equal(t, before, s.DoString(t, "GET", writerKey))
	sub.requireNothing(t)
}

func TestWriterThatGivesUpLetsReadersInAtOnce(t *testing.T) {
	s, c := waitingReaders(t)
	refuse(t, asReader(preferring), c, reader)
	sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
	for range 2 { // the second time as after a lost reply
		out, err := preferring.ReleaseWrite(t.Context(), c, writer, 0, "", 0)
		require.NoError(t, err)
		require.False(t, out.Held)
	}
	requireLock(t, s, lock, map[string]string{"mode": "read", other: "1"}, lease)
	sub.requireBytes(t, array("message", pairChannel, "1"))
	sub.requireNothing(t)
	grants(t, asReader(preferring), c, reader)
}

func TestWriterThatGetsTheLockStopsWaiting(t *testing.T) {
	s, c := waitingReaders(t)
	_, err := preferring.ReleaseRead(t.Context(), c, other, 0)
	require.NoError(t, err)
	for range 2 { // the second time as after a lost reply
		grants(t, preferring.AcquireWrite, c, writer)
		requireKeys(t, s, lock)
	}
}

func TestReadersThatWaitedHaveTheirTurnWhenAWriterLeaves(t *testing.T) {
	const turn = 100 * time.Millisecond
	s, c := waitingReaders(t)
	_, err := preferring.ReleaseRead(t.Context(), c, other, 0)
	require.NoError(t, err)
	grants(t, preferring.AcquireWrite, c, writer)
	refuse(t, asReader(preferring), c, reader)
	requireTTL(t, s, readerKey, 7*time.Second)
	for try := 0; ; try++ {
		_, err = preferring.ReleaseWrite(t.Context(), c, writer, 0, "", 0)
		require.NoError(t, err)
		left := s.DoInt(t, "PTTL", passKey)
		if s.DoInt(t, "PEXPIRE", passKey, ms(lease)) == 1 { // so that the test does not miss it
			require.LessOrEqual(t, left, turn.Milliseconds())
			break
		}
		// A slow machine has missed the turn.
		require.Less(t, try, 5, "readers have no turn")
		s.Do(t, "SET", readerKey, "1", "PX", ms(7*time.Second))
		grants(t, preferring.AcquireWrite, c, writer)
	}
	requireKeys(t, s, passKey)

	holder := refuse(t, preferring.AcquireWrite, c, me)
	require.Empty(t, holder.Owner)
	require.True(t, holder.Next)
	require.Positive(t, holder.Nap)
	waitingSince(t, s, 0)
	grants(t, asThatWaited(preferring), c, reader)
	grants(t, asThatWaited(preferring), c, "third:3")
	require.Equal(t, writer, refuse(t, asReader(preferring), c, "fourth:4").Owner,
		"it has not waited")
	requireTTL(t, s, passKey, lease)

	// Afterwards writers come first again, also for these readers.
	s.Do(t, "DEL", passKey)
	require.Equal(t, writer, refuse(t, asThatWaited(preferring), c, "fourth:4").Owner)
}

func TestTurnOfReadersIsOverSoonAfterTheLastHasLeft(t *testing.T) {
	s, c := start(t)
	read(t, c, me, 1, lease)
	read(t, c, other, 1, lease)
	s.Do(t, "SET", passKey, "1", "PX", ms(lease))
	_, err := preferring.ReleaseRead(t.Context(), c, me, 0)
	require.NoError(t, err)
	requireTTL(t, s, passKey, lease) // a reader is left
	_, err = preferring.ReleaseRead(t.Context(), c, other, 0)
	require.NoError(t, err)
	require.LessOrEqual(t, s.DoInt(t, "PTTL", passKey), int64(10))
}

func TestTurnOfReadersIsShortAndEndsByItself(t *testing.T) {
	s, c := start(t)
	s.Do(t, "SET", readerKey, "1", "PX", "7000")
	grants(t, preferring.AcquireWrite, c, writer)
	_, err := preferring.ReleaseWrite(t.Context(), c, writer, 0, "", 0)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		holder, err := preferring.AcquireWrite(t.Context(), c, me, 1, lease, true)
		return err == nil && holder == nil
	}, eventually, poll)
	// In its last millisecond a key exists, but has no time left.
	require.Eventually(t, func() bool { return s.DoInt(t, "EXISTS", passKey) == 0 }, eventually,
		poll)
	requireKeys(t, s, lock)
}

func TestWriterWithoutWaitingReadersBeginsNoTurn(t *testing.T) {
	s, c := start(t)
	grants(t, preferring.AcquireWrite, c, writer)
	_, err := preferring.ReleaseWrite(t.Context(), c, writer, 0, "", 0)
	require.NoError(t, err)
	requireKeys(t, s)
}
