//go:build redis

package rlock_test

import (
	"testing"

	"holdfast/internal/suite"
)

func TestPromisesOnRedis(t *testing.T) { suite.Run(t, suite.Redis, suite.Single()...) }
