package main

import (
	"context"
	"errors"

	"holdfast/cmd/holdfast/internal/connect"
)

// lsCommand is "holdfast ls".
type lsCommand struct {
	connect.Flags
}

// Run is still to be written.
func (lsCommand) Run(context.Context) error { return errors.New("not yet") }
