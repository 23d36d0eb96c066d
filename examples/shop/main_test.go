package main

import (
	"context"
	"os"
	"testing"

	"holdfast/internal/locktest"
)

func TestMain(m *testing.M) {
	locktest.Main(m, map[string]func(args []string) error{
		"shop": func(args []string) error {
			return run(context.Background(), args, os.Stdin, os.Stdout)
		},
	})
}
