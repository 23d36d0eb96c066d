package wire_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/wire"
)

func TestDerivedNamesAreRedissons(t *testing.T) {
	for _, test := range []struct{ name, prefixed, suffixed, channel string }{
		{"order:42", "p:{order:42}", "{order:42}:s", "redisson_lock__channel:{order:42}"},
		{"{tag}rest", "p:{tag}rest", "{tag}rest:s", "redisson_lock__channel:{tag}rest"},
		{"pre{tag}", "p:pre{tag}", "pre{tag}:s", "redisson_lock__channel:pre{tag}"},
		{"a{b", "p:a{b", "a{b:s", "redisson_lock__channel:a{b"},
		{"foo}bar", "p:{foo}bar}", "{foo}bar}:s", "redisson_lock__channel:{foo}bar}"},
		{"x{}y", "p:x{}y", "x{}y:s", "redisson_lock__channel:x{}y"},
		{"über", "p:{über}", "{über}:s", "redisson_lock__channel:{über}"},
		{"", "p:{}", "{}:s", "redisson_lock__channel:{}"},
	} {
		require.Equal(t, test.prefixed, wire.Prefix("p", test.name))
		require.Equal(t, test.suffixed, wire.Suffix(test.name, "s"))
		require.Equal(t, test.channel, wire.Channel(test.name))
	}
}

func TestNamesThatShareASlotAreAccepted(t *testing.T) {
	for _, name := range []string{"order:42", "{tag}rest", "pre{tag}post", "{a}{b}", "über",
		"{foobar}"} {
		require.NoError(t, wire.CheckSlots(name, wire.Channel(name), wire.Suffix(name, "s")), name)
	}
}

func TestNamesThatWouldSplitOverSlotsAreRefused(t *testing.T) {
	for _, name := range []string{"a{b", "foo}bar", "x{}y"} {
		err := wire.CheckSlots(name, wire.Channel(name))
		require.ErrorContains(t, err, "which a cluster does not allow", name)
		require.ErrorContains(t, err, `"`+name+`"`)
		require.ErrorContains(t, err, wire.Channel(name))
	}
	require.ErrorContains(t, wire.CheckSlots("foo}bar", wire.Channel("foo}bar")), "such as {foobar}")
	require.ErrorContains(
		t,
		wire.CheckSlots("a", wire.Channel("a"), "b"),
		"which a cluster does not allow",
		"only the last name has another slot",
	)
}

// keys has the cases of the hash tag rule.
var keys = []string{
	"", "a", "123456789", "order:42", "über", "\x00\xff",
	"{tag}rest", "pre{tag}post", "{user1000}.following",
	"foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}",
	"a{b", "foo}bar", "x{}y", "}{", "{", "}", "{}", "{}a", "a{}", "{a", "a}",
}

func TestSlotIsThatOfTheClusterSpecification(t *testing.T) {
	require.EqualValues(t, 0x31C3%16384, wire.Slot("123456789")) // 12739
	require.Equal(t, wire.Slot("{user1000}.following"), wire.Slot("{user1000}.followers"))
	require.Equal(t, wire.Slot("user1000"), wire.Slot("{user1000}.followers"))
	require.Equal(t, wire.Slot("{bar"), wire.Slot("foo{{bar}}zap"))
	require.Equal(t, wire.Slot("bar"), wire.Slot("foo{bar}{zap}"))
	require.NotEqual(t, wire.Slot("bar"), wire.Slot("foo{}{bar}"),
		"an empty tag hashes the whole key")
}

func FuzzSlot(f *testing.F) {
	for _, key := range keys {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		command := rueidis.Completed{}.SetSlot(key)
		require.Equal(t, command.Slot(), wire.Slot(key))
	})
}

func FuzzNames(f *testing.F) {
	for _, key := range keys {
		f.Add(key, "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11:4611686018427387905")
	}
	f.Fuzz(func(t *testing.T, name, owner string) {
		channel, queue := wire.Channel(name), wire.Prefix("redisson_lock_queue", name)
		if wire.CheckSlots(name, channel) != nil {
			return
		}
		// One prefix stands for all: prefixes have no brace, so the name's tag decides.
		require.Equal(t, wire.Slot(name), wire.Slot(channel))
		require.Equal(t, wire.Slot(name), wire.Slot(queue))
		require.Equal(t, wire.Slot(name), wire.Slot(wire.Suffix(name, owner)), "suffix")
		require.Equal(t, wire.Slot(name), wire.Slot(channel+":"+owner), "channel of one waiter")
	})
}
