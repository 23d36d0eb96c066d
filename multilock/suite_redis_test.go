//go:build redis && nightly

package multilock_test

import (
	"testing"

	"holdfast/internal/suite"
)

func TestPromisesOnRedis(t *testing.T) { suite.Run(t, suite.Redis, suite.Multi()) }
