package containers

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

	"holdfast/internal/redistest"
)

// dockerTimeout bounds any request to the engine. The first one may pull the image.
const dockerTimeout = 2 * time.Minute

// docker is the backend that runs the server in a container, on the loopback address of this
// machine: on the network of this machine where possible, which halves the start time, otherwise on
// its own network with a published port.
type docker struct {
	provider    *testcontainers.DockerProvider
	server      redistest.Request
	hostNetwork bool

	ctr      testcontainers.Container // nil before the first launch
	port     int                      // on which ctr is published
	pid      int                      // of the server of the last launch
	ended    chan struct{}            // closed when that has ended
	isolated bool
}

// newDocker returns an error when no engine replies.
func newDocker(server redistest.Request) (redistest.Backend, error) {
	engine, err := findEngine()
	if err != nil {
		return nil, err
	}
	provider, err := newProvider()
	if err != nil {
		return nil, err
	}
	return &docker{provider: provider, server: server,
		hostNetwork: server.HostNetwork || engine.sharesNetwork && !server.OwnNetwork}, nil
}

func (d *docker) Launch(port int) error {
	ctx, cancel := dockerContext()
	defer cancel()
	if d.ctr == nil || d.port != port {
		if err := d.create(ctx, port); err != nil {
			return err
		}
	}
	// Container.Start would wait until the port accepts connections. The caller does that, and
	// notices a server that ended at once.
	api := d.provider.Client()
	id := d.ctr.GetContainerID()
	if _, err := api.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return fmt.Errorf("start container: %w", err)
	}
	inspected, err := d.ctr.Inspect(ctx)
	if err != nil {
		return err
	}
	d.pid = inspected.State.Pid
	ended := make(chan struct{})
	d.ended = ended
	go func() {
		defer close(ended)
		wait := api.ContainerWait(context.Background(), id,
			client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		select {
		case <-wait.Result:
		case <-wait.Error: //nolint:errcheck // the engine is gone; the next request reports it
		}
	}()
	return nil
}

// create makes a container published on port, in place of the previous one.
func (d *docker) create(ctx context.Context, port int) error {
	if d.ctr != nil {
		if err := d.ctr.Terminate(ctx); err != nil {
			return err
		}
		d.ctr = nil
	}
	request := d.request(port)
	ctr, err := d.provider.CreateContainer(ctx, request)
	if ctr != nil { // even with an error there may be something to remove
		d.ctr, d.port = ctr, port
	}
	if err != nil {
		return fmt.Errorf("create container of %s (%s names another image): %w", request.Image,
			imageVariable, err)
	}
	return nil
}

func (d *docker) Stopped() <-chan struct{} { return d.ended }

// owns accepts every server on a published port: an engine that cannot publish the port does not
// start the container, so no other server replies there.
func (d *docker) Owns(processID string) bool {
	return !d.hostNetwork || processID == strconv.Itoa(d.pid)
}

func (d *docker) Kill() error {
	if d.ended == nil {
		return nil
	}
	select {
	case <-d.ended:
		return nil
	default:
	}
	if err := errors.Join(d.Resume(), d.Rejoin()); err != nil {
		return err
	}
	ctx, cancel := dockerContext()
	defer cancel()
	_, err := d.provider.Client().ContainerKill(ctx, d.ctr.GetContainerID(),
		client.ContainerKillOptions{Signal: "KILL"})
	if err != nil && !errdefs.IsConflict(err) { // conflict: it has ended by itself
		return err
	}
	<-d.ended
	return nil
}

func (d *docker) Remove() error {
	err := d.Kill()
	if d.ctr != nil {
		ctx, cancel := dockerContext()
		defer cancel()
		err = errors.Join(err, d.ctr.Terminate(ctx))
	}
	return errors.Join(err, d.provider.Close())
}

func (d *docker) Pause() error {
	ctx, cancel := dockerContext()
	defer cancel()
	_, err := d.provider.Client().ContainerPause(ctx, d.ctr.GetContainerID(),
		client.ContainerPauseOptions{})
	return err
}

func (d *docker) Resume() error {
	ctx, cancel := dockerContext()
	defer cancel()
	inspected, err := d.ctr.Inspect(ctx)
	if err != nil || !inspected.State.Paused {
		return err
	}
	_, err = d.provider.Client().ContainerUnpause(ctx, d.ctr.GetContainerID(),
		client.ContainerUnpauseOptions{})
	if err == nil {
		return nil
	}
	// An engine that was slow to note a pause calls a container paused just after it was resumed.
	inspected, _ = d.ctr.Inspect(ctx)
	if inspected != nil && !inspected.State.Paused {
		return nil
	}
	return err
}

func (d *docker) Isolate() error {
	if d.hostNetwork {
		return d.Pause()
	}
	ctx, cancel := dockerContext()
	defer cancel()
	_, err := d.provider.Client().NetworkDisconnect(ctx, testcontainers.Bridge,
		client.NetworkDisconnectOptions{Container: d.ctr.GetContainerID()})
	d.isolated = d.isolated || err == nil
	return err
}

// rejoin also publishes the port again.
func (d *docker) Rejoin() error {
	if d.hostNetwork {
		return d.Resume()
	}
	if !d.isolated {
		return nil
	}
	ctx, cancel := dockerContext()
	defer cancel()
	_, err := d.provider.Client().NetworkConnect(ctx, testcontainers.Bridge,
		client.NetworkConnectOptions{Container: d.ctr.GetContainerID()})
	d.isolated = err != nil
	return err
}

func (d *docker) Output() string {
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
