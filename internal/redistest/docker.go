package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

const (
	engineTimeout = 5 * time.Second // for an engine to say that it is there
	dockerTimeout = 2 * time.Minute // for any other request; the first one may pull the image
)

// docker is the backend that runs the server in a container, its port published
// on the loopback address of this machine.
type docker struct {
	provider *testcontainers.DockerProvider
	settings *settings

	ctr   testcontainers.Container // nil before the first launch
	port  int                      // on which ctr is published
	ended chan struct{}            // closed when the server of the last launch has ended
}

// newDocker returns an error when no engine answers.
func newDocker(s *settings) (*docker, error) {
	provider, err := testcontainers.NewDockerProvider(
		testcontainers.WithLogger(log.NewNoopLogger()),
		// Else it creates a network of its own, and leaves it behind.
		testcontainers.WithDefaultBridgeNetwork(testcontainers.Bridge),
	)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), engineTimeout)
	defer cancel()
	if err := provider.Health(ctx); err != nil {
		return nil, errors.Join(err, provider.Close())
	}
	return &docker{provider: provider, settings: s}, nil
}

func (d *docker) launch(port int) error {
	ctx, cancel := dockerContext()
	defer cancel()
	if d.ctr == nil || d.port != port {
		if err := d.create(ctx, port); err != nil {
			return err
		}
	}
	// Not Container.Start, which would wait until the port answers: the caller
	// does that, and notices a server that ended at once.
	api := d.provider.Client()
	id := d.ctr.GetContainerID()
	if _, err := api.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return fmt.Errorf("start container: %w", err)
	}
	ended := make(chan struct{})
	d.ended = ended
	go func() {
		defer close(ended)
		wait := api.ContainerWait(context.Background(), id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		select {
		case <-wait.Result:
		case <-wait.Error: //nolint:errcheck // the engine is gone; the next request says so
		}
	}()
	return nil
}

// create makes a container published on port, in place of the one there was.
func (d *docker) create(ctx context.Context, port int) error {
	if d.ctr != nil {
		if err := d.ctr.Terminate(ctx); err != nil {
			return err
		}
		d.ctr = nil
	}
	request := d.request(port)
	ctr, err := d.provider.CreateContainer(ctx, request)
	if ctr != nil { // also beside an error: there is something to remove
		d.ctr, d.port = ctr, port
	}
	if err != nil {
		return fmt.Errorf("create container of %s: %w", request.Image, err)
	}
	return nil
}

func (d *docker) stopped() <-chan struct{} { return d.ended }

// owns believes every server on a published port: an engine that cannot publish
// the port does not start the container, so nobody else answers there.
func (d *docker) owns(processID string) bool {
	if !d.settings.hostNetwork {
		return true
	}
	ctx, cancel := dockerContext()
	defer cancel()
	inspected, err := d.ctr.Inspect(ctx)
	return err == nil && processID == strconv.Itoa(inspected.State.Pid)
}

func (d *docker) kill() error {
	if d.ended == nil {
		return nil
	}
	select {
	case <-d.ended:
		return nil
	default:
	}
	if err := d.resume(); err != nil {
		return err
	}
	ctx, cancel := dockerContext()
	defer cancel()
	_, err := d.provider.Client().ContainerKill(ctx, d.ctr.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
	if err != nil && !errdefs.IsConflict(err) { // conflict: it has ended by itself
		return err
	}
	<-d.ended
	return nil
}

func (d *docker) remove() error {
	err := d.kill()
	if d.ctr != nil {
		ctx, cancel := dockerContext()
		defer cancel()
		err = errors.Join(err, d.ctr.Terminate(ctx))
	}
	return errors.Join(err, d.provider.Close())
}

func (d *docker) pause() error {
	ctx, cancel := dockerContext()
	defer cancel()
	_, err := d.provider.Client().ContainerPause(ctx, d.ctr.GetContainerID(), client.ContainerPauseOptions{})
	return err
}

func (d *docker) resume() error {
	ctx, cancel := dockerContext()
	defer cancel()
	inspected, err := d.ctr.Inspect(ctx)
	if err != nil || !inspected.State.Paused {
		return err
	}
	_, err = d.provider.Client().ContainerUnpause(ctx, d.ctr.GetContainerID(), client.ContainerUnpauseOptions{})
	return err
}

func (d *docker) output() string {
	if d.ctr == nil {
		return ""
	}
	ctx, cancel := dockerContext()
	defer cancel()
	logs, err := d.ctr.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer logs.Close()
	b, err := io.ReadAll(logs)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func dockerContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), dockerTimeout)
}
