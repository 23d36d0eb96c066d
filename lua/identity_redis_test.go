//go:build redis

package lua_test

import (
	"testing"

	"holdfast/lua"
)

func TestRefusedIdentityIsAnErrorOfItsClass(t *testing.T) {
	_, c := startAs(t, "resetkeys", "~order:*")
	err := lua.Identify(t.Context(), c, clientID, nightly, lease)
	requireError(t, err, lua.ClassPermanent, "NOPERM")
	_, err = lua.ReadIdentity(t.Context(), c, clientID)
	requireError(t, err, lua.ClassPermanent, "NOPERM")
	requireError(t, lua.Forget(t.Context(), c, clientID), lua.ClassPermanent, "NOPERM")
}
