package main

import (
	"context"
	"errors"

	"holdfast/cmd/holdfast/internal/connect"
)

// inspectCommand is "holdfast inspect".
type inspectCommand struct {
	connect.Flags
}

// Run is still to be written.
func (inspectCommand) Run(context.Context) error { return errors.New("not yet") }
