package lua_test

import (
	"fmt"
	"testing"

	"holdfast/lua"
)

func TestWrappedRefusalIsClassifiedLikeThePlainOne(t *testing.T) {
	s, c := start(t)
	s.Do(t, "SET", "text", "x")
	refusal := c.Do(t.Context(), c.B().Hgetall().Key("text").Build()).Error()
	requireError(t, lua.Classify(refusal), lua.ClassPermanent, "WRONGTYPE")
	requireError(t, lua.Classify(fmt.Errorf("look: %w", refusal)), lua.ClassPermanent, "WRONGTYPE")
}
