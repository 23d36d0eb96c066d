package containers

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// engineTimeout bounds the wait for an engine's reply.
const engineTimeout = 5 * time.Second

// engine is what the backend must know of the Docker engine.
type engine struct {
	// sharesNetwork is set when a container on the engine's host network listens on the loopback
	// address of this machine.
	sharesNetwork bool
}

// findEngine asks for the engine once per test binary. It returns an error when none replies.
var findEngine = sync.OnceValues(func() (engine, error) {
	provider, err := newProvider()
	if err != nil {
		return engine{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), engineTimeout)
	defer cancel()
	api := provider.Client()
	reply, err := api.Info(ctx, client.InfoOptions{})
	err = errors.Join(err, provider.Close())
	if err != nil {
		return engine{}, err
	}
	// An engine that is elsewhere, in a virtual machine, or a user's with its own network has
	// another loopback address.
	shares := runtime.GOOS == "linux" && strings.HasPrefix(api.DaemonHost(), "unix://") &&
		!strings.Contains(reply.Info.OperatingSystem, "Docker Desktop")
	for _, option := range reply.Info.SecurityOptions {
		shares = shares && !strings.Contains(option, "rootless")
	}
	return engine{sharesNetwork: shares}, nil
})

func newProvider() (*testcontainers.DockerProvider, error) {
	return testcontainers.NewDockerProvider(
		testcontainers.WithLogger(log.NewNoopLogger()),
		// Otherwise it creates a network, and leaves it behind.
		testcontainers.WithDefaultBridgeNetwork(testcontainers.Bridge),
	)
}
