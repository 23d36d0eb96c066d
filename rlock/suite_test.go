//go:build !race

package rlock_test

import (
	"testing"

	"holdfast/internal/suite"
)

// The race detector crashes now and then in bubbles of testing/synctest, and these are many. See
// https://github.com/golang/go/issues/78156.
func TestPromises(t *testing.T) { suite.Run(t, suite.Virtual, suite.Single()...) }
