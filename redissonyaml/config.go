package redissonyaml

import (
	"github.com/redis/rueidis"

	"holdfast/rlock"
)

// Config has the settings of a Redisson file for rueidis and rlock. You may change the fields
// before you use them.
type Config struct {
	Redis rueidis.ClientOption // for rueidis.NewClient
	Locks rlock.Options        // for rlock.New

	// Notes lists harmless lines without a counterpart in holdfast, and lines with a slightly
	// different meaning. Log the notes once.
	Notes []Line
}

// Options changes the result of Load. The zero value has all defaults.
type Options struct {
	// Handled lists keys that your program handles, such as "sslTruststore". Load turns these keys
	// into notes, regardless of their values. Defaults to none.
	Handled []string

	// PrefixMappers lists Java classes, by their full names, whose NameMapper puts its property prefix
	// in front of each name and does nothing else. The prefix becomes [rlock.Options].NameMapper.
	// Defaults to none, because only your program knows what a class does, and with other names the
	// two sides would not exclude each other.
	PrefixMappers []string
}
