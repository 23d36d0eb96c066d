package integration_test

import (
	"testing"

	"holdfast/integration/containers"
)

func TestMain(m *testing.M) { containers.Main(m) }
