package redissonyaml

import (
	"github.com/redis/rueidis"

	"holdfast/rlock"
)

// Config is what a Redisson file says, in the terms of rueidis and rlock. Its fields may be changed
// before they are used.
type Config struct {
	Redis rueidis.ClientOption // for rueidis.NewClient
	Locks rlock.Options        // for rlock.New

	// Notes lists the lines that have no counterpart here, which is harmless, and those that mean
	// something slightly different. Log them once.
	Notes []Line
}

// Options changes what Load accepts. The zero value is ready for use.
type Options struct {
	// Handled lists keys that Load must leave to the caller, such as "sslTruststore": they become
	// notes whatever their value is. Defaults to none.
	Handled []string

	// PrefixMappers lists Java classes, by their full names, that are a NameMapper which puts its
	// property prefix before each name and does nothing else. Their prefix becomes
	// rlock.Options.NameMapper. Defaults to none: what a class does with a prefix only its program
	// knows, and with other names the two sides would not exclude each other.
	PrefixMappers []string
}
