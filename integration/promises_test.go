//go:build redis && nightly

package integration_test

import (
	"testing"

	"holdfast/internal/suite"
)

// The packages of the locks run the suite on a single server, and on three for RedLock.

func TestPromisesOnACluster(t *testing.T) {
	suite.Run(t, suite.Cluster, append(suite.Single(), suite.Multi())...)
}

func TestPromisesThroughSentinel(t *testing.T) {
	suite.Run(t, suite.Sentinel, append(suite.Single(), suite.Multi())...)
}
