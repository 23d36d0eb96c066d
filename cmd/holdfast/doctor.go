package main

import (
	"context"
	"errors"

	"holdfast/cmd/holdfast/internal/connect"
)

// doctorCommand is "holdfast doctor".
type doctorCommand struct {
	connect.Flags
}

// Run is still to be written.
func (doctorCommand) Run(context.Context) error { return errors.New("not yet") }
