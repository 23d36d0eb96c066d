package main

import (
	"context"
	"errors"

	"holdfast/cmd/holdfast/internal/connect"
)

// topCommand is "holdfast top".
type topCommand struct {
	connect.Flags
}

// Run is still to be written.
func (topCommand) Run(context.Context) error { return errors.New("not yet") }
