package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
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
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.prefixed, lua.Prefix("p", test.name))
			require.Equal(t, test.suffixed, lua.Suffix(test.name, "s"))
			require.Equal(t, test.channel, lua.Channel(test.name))
		})
	}
}

func TestNamesThatShareASlotAreAccepted(t *testing.T) {
	for _, name := range []string{"order:42", "{tag}rest", "pre{tag}post", "{a}{b}", "über"} {
		require.NoError(t, lua.CheckSlots(name, lua.Channel(name), lua.Suffix(name, "s")), name)
	}
}

func TestNamesThatWouldSplitOverSlotsAreRefused(t *testing.T) {
	for _, name := range []string{"a{b", "foo}bar", "x{}y"} {
		err := lua.CheckSlots(name, lua.Channel(name))
		require.ErrorContains(t, err, "would not share a slot", name)
		require.ErrorContains(t, err, `"`+name+`"`)
		require.ErrorContains(t, err, lua.Channel(name))
	}
	require.ErrorContains(t, lua.CheckSlots("foo}bar", lua.Channel("foo}bar")), "such as {foobar}")
	require.ErrorContains(
		t,
		lua.CheckSlots("a", lua.Channel("a"), "b"),
		"would not share a slot",
		"only the last name has another slot",
	)
}

func TestAdvisedNameIsAccepted(t *testing.T) {
	require.NoError(t, lua.CheckSlots("{foobar}", lua.Channel("{foobar}")))
}
