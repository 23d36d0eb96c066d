// Package containers runs the servers of tests in containers, with testcontainers-go. The variable
// HOLDFAST_TEST_BACKEND=docker asks for that, in packages whose tests begin with [Main]:
//
//	exports=$(integration/containers/ensure-docker.sh) && eval "$exports"
//	go test -tags redis ./integration
//
// HOLDFAST_TEST_IMAGE names the image; the default is redis:7. The script beside this file provides
// an engine and an image, also without a registry.
package containers

import (
	"testing"

	"go.uber.org/goleak"

	"holdfast/internal/redistest"
)

// Main is [redistest.VerifyMain] for packages whose servers may be containers. A test binary that
// is killed leaves its containers behind where Testcontainers may not run its reaper.
func Main(m *testing.M) {
	redistest.Containers = newDocker
	redistest.VerifyMain(m,
		// The connection to the container that removes what a killed test binary leaves behind
		// lives as long as the binary.
		goleak.IgnoreAnyFunction(
			"github.com/testcontainers/testcontainers-go.(*Reaper).connect.func1"))
}
