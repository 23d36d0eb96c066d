package lua_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// keys has the cases of the hash tag rule.
var keys = []string{
	"", "a", "123456789", "order:42", "über", "\x00\xff",
	"{tag}rest", "pre{tag}post", "{user1000}.following",
	"foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}",
	"a{b", "foo}bar", "x{}y", "}{", "{", "}", "{}", "{}a", "a{}", "{a", "a}",
}

func TestSlotIsThatOfTheClusterSpecification(t *testing.T) {
	require.EqualValues(t, 0x31C3%16384, lua.Slot("123456789")) // 12739
	require.Equal(t, lua.Slot("{user1000}.following"), lua.Slot("{user1000}.followers"))
	require.Equal(t, lua.Slot("user1000"), lua.Slot("{user1000}.followers"))
	require.Equal(t, lua.Slot("{bar"), lua.Slot("foo{{bar}}zap"))
	require.Equal(t, lua.Slot("bar"), lua.Slot("foo{bar}{zap}"))
	require.NotEqual(t, lua.Slot("bar"), lua.Slot("foo{}{bar}"),
		"an empty tag hashes the whole key")
}

func FuzzSlot(f *testing.F) {
	for _, key := range keys {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		command := rueidis.Completed{}.SetSlot(key)
		require.Equal(t, command.Slot(), lua.Slot(key))
	})
}

func FuzzNames(f *testing.F) {
	for _, key := range keys {
		f.Add(key, me)
	}
	f.Fuzz(func(t *testing.T, name, owner string) {
		channel, queue := lua.Channel(name), lua.Prefix("redisson_lock_queue", name)
		if lua.CheckSlots(name, channel) != nil {
			return
		}
		// One prefix stands for all: prefixes have no brace, so the name's tag decides.
		require.Equal(t, lua.Slot(name), lua.Slot(channel))
		require.Equal(t, lua.Slot(name), lua.Slot(queue))
		require.Equal(t, lua.Slot(name), lua.Slot(lua.Suffix(name, owner)), "suffix")
		require.Equal(t, lua.Slot(name), lua.Slot(channel+":"+owner), "channel of one waiter")
	})
}

func BenchmarkSlot(b *testing.B) {
	for b.Loop() {
		lua.Slot("redisson_lock__channel:{order:42}")
	}
}
