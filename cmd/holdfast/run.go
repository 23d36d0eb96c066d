package main

import (
	"context"
	"errors"

	"holdfast/cmd/holdfast/internal/connect"
)

// runCommand is "holdfast run".
type runCommand struct {
	connect.Flags
}

// Run is still to be written.
func (runCommand) Run(context.Context) error { return errors.New("not yet") }
