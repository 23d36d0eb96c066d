// Package rueidis stands in for the real one.
package rueidis

type Client interface{}
