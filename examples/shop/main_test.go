package main

import (
	"os"
	"testing"

	"holdfast/internal/locktest"
)

func TestMain(m *testing.M) {
	locktest.Main(m, map[string]func(args []string) error{
		"shop": func(args []string) error {
			return untilTold(args, os.Stdin, os.Stdout)
		},
	})
}
