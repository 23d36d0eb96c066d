package integration

import (
	"strings"

	"holdfast/internal/redistest"
)

// Variant is how clients connect to servers, or what these store. All combine with each other.
type Variant struct {
	name    string
	options func() []redistest.Option
}

var (
	// Plain is TCP without a password, and memory only: the default.
	Plain = Variant{"plain", func() []redistest.Option { return nil }}
	// Password requires a password.
	Password = Variant{"password", func() []redistest.Option {
		return []redistest.Option{redistest.WithPassword("open sesame")}
	}}
	// User has clients connect as the user [UserName], which may do anything to keys, but neither
	// configure nor empty the server.
	User = Variant{"user", func() []redistest.Option {
		// Not -@admin: servers before Redis 7 count all of CLIENT and CLUSTER as administration.
		return []redistest.Option{redistest.WithUser(UserName, "open sesame",
			"~*", "&*", "+@all", "-config", "-debug", "-flushall", "-flushdb", "-shutdown")}
	}}
	// TLS accepts no other connections, between servers and Sentinels as well.
	TLS = Variant{"tls", func() []redistest.Option {
		return []redistest.Option{redistest.WithTLS()}
	}}
	// AppendOnly servers keep all data through a kill. Others come back empty.
	AppendOnly = Variant{"append-only", func() []redistest.Option {
		return []redistest.Option{redistest.WithAppendOnly()}
	}}
)

// UserName is the user of clients in the variant User.
const UserName = "app"

// Args returns a variant with further arguments of redis-server.
func Args(args ...string) Variant {
	return Variant{"args", func() []redistest.Option {
		return []redistest.Option{redistest.WithArgs(args...)}
	}}
}

// Variants returns all of them, for a test that must hold everywhere.
func Variants() []Variant { return []Variant{Plain, Password, User, TLS, AppendOnly} }

// String returns a name such as tls, fit for the name of a test.
func (v Variant) String() string { return v.name }

// all returns the names of variants, for messages.
func all(variants []Variant) string {
	var names strings.Builder
	for _, variant := range variants {
		names.WriteString(" " + variant.name)
	}
	return names.String()
}
