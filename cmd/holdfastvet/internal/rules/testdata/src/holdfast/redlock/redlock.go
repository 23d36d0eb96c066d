// Package redlock stands in for holdfast's. Made by stub_test.go.
package redlock

import "context"
import "holdfast/rlock"
import "time"

type DelayedError struct {
	For     time.Duration
	Emptied bool
}

func (*DelayedError) Error() string {
	return *new(string)
}

var ErrNoQuorum error

var ErrNoReply error

type Lock struct {
	_ int
}

func (*Lock) Lock(ctx context.Context, lease rlock.Lease) (*rlock.Hold, error) {
	return *new(*rlock.Hold), *new(error)
}

func (*Lock) Name() string {
	return *new(string)
}

func (*Lock) Server() string {
	return *new(string)
}

func (*Lock) TryLock(ctx context.Context, wait time.Duration, lease rlock.Lease) (*rlock.Hold, error) {
	return *new(*rlock.Hold), *new(error)
}

func (*Lock) Unlock(ctx context.Context) error {
	return *new(error)
}

func (*Lock) WithOptions(o Options) *Lock {
	return *new(*Lock)
}

func New(locks ...*rlock.Lock) *Lock {
	return *new(*Lock)
}

func NewOn(name string, o Options, clients ...*rlock.Client) *Lock {
	return *new(*Lock)
}

type NodeError struct {
	Server string
	Err    error
}

type Options struct {
	NodeTimeout time.Duration
	MaxLease    time.Duration
	FsyncAlways bool
	Epoch       bool
}

type QuorumError struct {
	Lock    string
	Want    int
	Granted int
	Nodes   []NodeError
	_       int
}

func (*QuorumError) Error() string {
	return *new(string)
}

func (*QuorumError) Unwrap() []error {
	return *new([]error)
}
