package containers

import (
	"cmp"
	"net/netip"
	"os"
	"path"
	"strconv"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"

	"holdfast/internal/portlock"
)

const (
	imageVariable = "HOLDFAST_TEST_IMAGE"
	defaultImage  = "redis:7"

	insidePort = 6379   // of a published server
	insideTLS  = "/tls" // where the certificates are
)

// request describes the container that serves port.
func (d *docker) request(port int) testcontainers.ContainerRequest {
	request := testcontainers.ContainerRequest{Image: cmp.Or(os.Getenv(imageVariable),
		defaultImage)}
	listen := insidePort
	if d.hostNetwork {
		listen = port
		request.HostConfigModifier = func(config *container.HostConfig) {
			config.NetworkMode = "host"
			// The server then knows its process id as others do, so that another server on its port
			// is recognized.
			config.PidMode = "host"
		}
	} else {
		inside := network.MustParsePort(strconv.Itoa(insidePort) + "/tcp")
		request.ExposedPorts = []string{inside.String()}
		request.HostConfigModifier = func(config *container.HostConfig) {
			config.PortBindings = network.PortMap{inside: {{HostIP: netip.MustParseAddr(portlock.Host),
				HostPort: strconv.Itoa(port)}}}
		}
	}
	request.Cmd = []string{"redis-server"}
	if d.server.Sentinel {
		const file = "/tmp/sentinel.conf"
		request.Cmd = []string{"sh", "-c", ": >>" + file + ` && exec redis-server "$@"`, "sh", file,
			"--sentinel"}
	}
	if d.hostNetwork {
		request.Cmd = append(request.Cmd, "--bind", portlock.Host)
	} else {
		// Protected mode refuses clients from outside of the container.
		request.Cmd = append(request.Cmd, "--protected-mode", "no")
	}
	request.Cmd = append(request.Cmd, d.server.Arguments(listen, insideTLS)...)
	for _, file := range d.server.Certificates {
		request.Files = append(request.Files, testcontainers.ContainerFile{
			HostFilePath:      file,
			ContainerFilePath: path.Join(insideTLS, path.Base(file)),
			FileMode:          0o644, // the image may change to its own user
		})
	}
	return request
}
