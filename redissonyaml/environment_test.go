package redissonyaml_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/redissonyaml"
)

func TestVariablesAreReplacedAsByRedisson(t *testing.T) {
	t.Setenv("HOLDFAST_HOST", "10.0.0.7")
	t.Setenv("HOLDFAST_EMPTY", "")
	config := load(t, `
# ${HOLDFAST_UNSET} is no matter in a comment
singleServerConfig:
  address: "redis://${HOLDFAST_HOST}:${HOLDFAST_PORT:-6380}"
  clientName: "${HOLDFAST_EMPTY:-otherwise}"
  password: "${spring.redis.password:-a:b}"
`)
	require.Equal(t, []string{"10.0.0.7:6380"}, config.Redis.InitAddress)
	require.Empty(t, config.Redis.ClientName, "an empty variable is set")
	require.Equal(t, "a:b", config.Redis.Password)
}

func TestLinesAreThoseOfTheFileWhenAVariableHasSeveral(t *testing.T) {
	t.Setenv("HOLDFAST_SERVER", "singleServerConfig:\n  address: \"redis://a:1\"\n")
	_, err := redissonyaml.Load(strings.NewReader("${HOLDFAST_SERVER}\nfrobnicate: 1\n"),
		redissonyaml.Options{})
	var wrong *redissonyaml.Error
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, 2, wrong.Lines[0].Number)
}
