package main

import (
	"context"
	"errors"

	"holdfast/cmd/holdfast/internal/connect"
)

// unlockCommand is "holdfast unlock".
type unlockCommand struct {
	connect.Flags
}

// Run is still to be written.
func (unlockCommand) Run(context.Context) error { return errors.New("not yet") }
