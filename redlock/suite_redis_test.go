//go:build redis

package redlock_test

import (
	"testing"

	"holdfast/internal/suite"
)

func TestPromisesOnRedis(t *testing.T) { suite.Run(t, suite.Redis, suite.Quorum()) }
