package demo

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// server is the address of the Redis server of this run.
type server struct {
	Address  string `json:"address"` // host:port or a URL
	Embedded bool   `json:"embedded"`
}

const (
	dialTimeout = 2 * time.Second
	pingTimeout = 3 * time.Second
)

// option returns the options of the rueidis client.
func (s server) option() (option rueidis.ClientOption, err error) {
	if s.Embedded {
		// Over RESP3 a subscription shares its connection with commands, which the embedded server
		// refuses. It also replies to CLUSTER SLOTS although it is a single node.
		return rueidis.ClientOption{
			InitAddress:       []string{s.Address},
			AlwaysRESP2:       true,
			DisableCache:      true,
			ForceSingleClient: true,
		}, nil
	}
	if strings.Contains(s.Address, "://") {
		option, err = rueidis.ParseURL(s.Address)
	} else if _, _, err = net.SplitHostPort(s.Address); err == nil {
		option.InitAddress = []string{s.Address}
	}
	if err != nil {
		return option, fmt.Errorf("--redis: want host:port or redis://…: %w", err)
	}
	if option.Dialer.Timeout == 0 {
		option.Dialer.Timeout = dialTimeout
	}
	return option, nil
}

// connect returns a client after a first reply of the server.
func (s server) connect(ctx context.Context) (rueidis.Client, error) {
	option, err := s.option()
	if err != nil {
		return nil, err
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil,
			fmt.Errorf("cannot reach Redis at %s: %w (without --redis the demo brings a server "+
				"of its own)", s, err)
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := client.Do(ctx, client.B().Ping().Build()).Error(); err != nil {
		client.Close()
		return nil, fmt.Errorf("no answer to PING from Redis at %s: %w", s, err)
	}
	return client, nil
}

// String returns the address without user and password.
func (s server) String() string {
	address := s.Address
	if scheme, rest, isURL := strings.Cut(address, "://"); isURL {
		address = rest
		if at := strings.LastIndex(address, "@"); at >= 0 {
			address = address[at+1:]
		}
		address = scheme + "://" + address
	}
	return address
}
