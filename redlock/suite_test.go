package redlock_test

import (
	"testing"

	"holdfast/internal/suite"
)

func TestPromises(t *testing.T) { suite.Run(t, suite.Virtual, suite.Quorum()) }
