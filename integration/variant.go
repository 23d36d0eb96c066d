package integration

import (
	"strings"

	"holdfast/internal/redistest"
)

// Variant is how clients connect to servers, or what these store. All combine with each other.
// Without any, it is TCP without a password, and memory only.
type Variant struct {
	name    string
	options func() []redistest.Option
}

var (
	// Password requires a password.
	Password = Variant{"password", func() []redistest.Option {
		return []redistest.Option{redistest.WithPassword("open sesame")}
	}}
	// User has clients connect as a user who may do anything to keys, but neither
	// configure nor empty the server.
	User = Variant{"user", func() []redistest.Option {
		// Not -@admin: servers before Redis 7 count all of CLIENT and CLUSTER as administration.
		return []redistest.Option{redistest.WithUser("app", "open sesame",
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

// all returns the names of variants, for messages.
func all(variants []Variant) string {
	var names strings.Builder
	for _, variant := range variants {
		names.WriteString(" " + variant.name)
	}
	return names.String()
}
