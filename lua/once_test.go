package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/rediserr"
	"holdfast/lua"
)

// stored is the record of a run with a result.
func stored(run string) lua.OnceRecord {
	return lua.OnceRecord{Token: 42, Run: run, Stored: true, Print: "-", Result: "a  result\r\n\x00"}
}

func TestResultOfARunIsStoredOnceAndFound(t *testing.T) {
	s, c := start(t)
	begin := func(run string) lua.OnceRecord {
		record, err := lua.BeginOnce(t.Context(), c, lock, me, run, lease)
		require.NoError(t, err)
		return record
	}
	store := func(record lua.OnceRecord) lua.OnceRecord {
		stored, err := lua.StoreOnce(t.Context(), c, lock, me, record, 2*lease)
		require.NoError(t, err)
		return stored
	}
	look := func() lua.OnceRecord {
		record, err := lua.LookOnce(t.Context(), c, lock)
		require.NoError(t, err)
		return record
	}
	require.Zero(t, look())
	require.Equal(t, lua.OnceRecord{Lost: true}, begin("first"), "nobody holds the lock")
	hold(t, s, lock, me, "1", lease)
	first := begin("first")
	require.InDelta(t, time.Now().UnixMicro(), first.Token, float64(time.Minute.Microseconds()))
	require.Equal(t, first, begin("first"), "repeated")
	require.Equal(t, first, look())
	requireTTL(t, s, onceKey, lease)
	second := begin("second")
	require.Greater(t, second.Token, first.Token)
	require.Equal(t, lua.OnceRecord{Lost: true}, store(withResult(first)), "a later run has begun")

	result := withResult(second)
	s.Do(t, "DEL", onceKey) // as if its lifetime were over
	require.Equal(t, result, store(result))
	requireTTL(t, s, onceKey, 2*lease)
	s.Do(t, "DEL", lock)
	require.Equal(t, result, store(result), "repeated after the release")
	require.Equal(t, result, look())
	require.Equal(t, result, store(withResult(first)), "the result of the other run")
	hold(t, s, lock, me, "1", lease)
	require.Equal(t, result, begin("third"))
}

func withResult(begun lua.OnceRecord) lua.OnceRecord {
	record := stored(begun.Run)
	record.Token = begun.Token
	return record
}

func TestStoreByAnOwnerWithoutTheLockIsRejected(t *testing.T) {
	s, c := start(t)
	for _, holder := range []string{"", other} {
		s.Do(t, "FLUSHALL")
		if holder != "" {
			hold(t, s, lock, holder, "1", lease)
		}
		record, err := lua.StoreOnce(t.Context(), c, lock, me, stored("run"), lease)
		require.NoError(t, err)
		require.Equal(t, lua.OnceRecord{Lost: true}, record)
		require.EqualValues(t, 0, s.DoInt(t, "EXISTS", onceKey))
	}
}

func TestForeignValueIsNotARecord(t *testing.T) {
	s, c := start(t)
	for _, value := range []string{"", "a page", "41", "41 run print", "x run"} {
		s.Do(t, "FLUSHALL")
		hold(t, s, lock, me, "1", lease)
		s.Do(t, "SET", onceKey, value)
		_, err := lua.LookOnce(t.Context(), c, lock)
		requireError(t, err, rediserr.ClassPermanent, "")
		require.ErrorContains(t, err, onceKey)
		_, err = lua.BeginOnce(t.Context(), c, lock, me, "run", lease)
		requireError(t, err, rediserr.ClassPermanent, "")
		require.Equal(t, value, s.DoString(t, "GET", onceKey))
	}
}
