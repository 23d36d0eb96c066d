package integration

import (
	"strings"

	"holdfast/internal/redistest"
)

// Variant is a way into servers, or what they keep. Any of them can be combined with any other.
type Variant struct {
	name    string
	options func() []redistest.Option
}

var (
	// Plain is TCP without a password, and memory only: what servers have without any variant.
	Plain = Variant{"plain", func() []redistest.Option { return nil }}
	// Password demands one.
	Password = Variant{"password", func() []redistest.Option {
		return []redistest.Option{redistest.WithPassword("open sesame")}
	}}
	// User has clients connect as the user [UserName], who may do anything to keys, but not configure or empty the server.
	User = Variant{"user", func() []redistest.Option {
		// Not -@admin: servers before Redis 7 count all of CLIENT and CLUSTER as administration.
		return []redistest.Option{redistest.WithUser(UserName, "open sesame",
			"~*", "&*", "+@all", "-config", "-debug", "-flushall", "-flushdb", "-shutdown")}
	}}
	// TLS accepts nothing else, between servers and Sentinels as well.
	TLS = Variant{"tls", func() []redistest.Option { return []redistest.Option{redistest.WithTLS()} }}
	// AppendOnly servers remember everything after a kill. Others come back empty.
	AppendOnly = Variant{"append-only", func() []redistest.Option {
		return []redistest.Option{redistest.WithAppendOnly()}
	}}
)

// UserName is whom clients connect as in the variant User.
const UserName = "app"

// Args is a variant of further arguments of redis-server.
func Args(args ...string) Variant {
	return Variant{"args", func() []redistest.Option { return []redistest.Option{redistest.WithArgs(args...)} }}
}

// Variants are all of them, for a test that wants to hold everywhere.
func Variants() []Variant { return []Variant{Plain, Password, User, TLS, AppendOnly} }

// String is such as tls: fit for the name of a test.
func (v Variant) String() string { return v.name }

// all are several variants at a time, for messages.
func all(variants []Variant) string {
	var names strings.Builder
	for _, variant := range variants {
		names.WriteString(" " + variant.name)
	}
	return names.String()
}
