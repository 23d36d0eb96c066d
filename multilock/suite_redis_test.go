//go:build redis

package multilock_test

import (
	"testing"

	"holdfast/internal/suite"
)

func TestPromisesOnRedis(t *testing.T) { suite.Run(t, suite.Redis, suite.Multi()) }
