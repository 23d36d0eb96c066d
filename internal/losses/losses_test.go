package losses_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/losses"
)

func TestMemoryKeepsTheValuesOfEachKeyInOrder(t *testing.T) {
	var m losses.Memory[string, int]
	require.Empty(t, m.Of("a"))
	m.Remove("a", 1)
	m.Forget("a")
	m.Add("a", 1)
	m.Add("b", 2)
	m.Add("a", 3)
	require.Equal(t, []int{1, 3}, m.Of("a"))
	require.Equal(t, []int{2}, m.Of("b"))
	m.Remove("a", 2)
	m.Remove("a", 1)
	require.Equal(t, []int{3}, m.Of("a"))
	m.Add("a", 4)
	m.Forget("a")
	require.Empty(t, m.Of("a"))
	require.Equal(t, []int{2}, m.Of("b"))
}

func TestMemoryForgetsTheOldestWhenThereAreTooMany(t *testing.T) {
	var m losses.Memory[int, int]
	for i := range 3 * losses.Most {
		m.Add(i%2, i)
	}
	require.Len(t, append(m.Of(0), m.Of(1)...), losses.Most)
	require.Equal(t, 2*losses.Most, m.Of(0)[0])
	m.Forget(0)
	m.Forget(1)
	m.Add(0, 1)
	require.Equal(t, []int{1}, m.Of(0))
}
