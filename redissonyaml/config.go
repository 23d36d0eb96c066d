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
}
