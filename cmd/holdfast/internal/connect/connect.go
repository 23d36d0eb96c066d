// Package connect makes rueidis clients from the flags and the environment of the program.
package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"holdfast/cmd/holdfast/internal/status"
)

// Flags are the flags with which each command finds its server. Passwords are not among them: the
// command line of a process can be read by all users of its machine.
type Flags struct {
	Redis        []string `group:"Server" short:"r" placeholder:"ADDR" sep:"none" help:"Redis server, as host, host:port, a URL (rediss:// for TLS), or the path of a socket. Repeat the flag for the nodes of a cluster. Default: $$REDIS_URL, or 127.0.0.1:6379."`
	Sentinel     string   `group:"Server" placeholder:"MASTER" help:"Ask Sentinels for the server of this name. --redis has the addresses of the Sentinels."`
	User         string   `group:"Server" placeholder:"NAME" help:"User of the ACL. The password comes from $$REDISCLI_AUTH, $$REDIS_URL, or --password-file."`
	PasswordFile string   `group:"Server" placeholder:"FILE" help:"File that contains the password."`
	TLS          bool     `group:"Server" name:"tls" help:"Use TLS, as a rediss:// URL does."`
	CACert       string   `group:"Server" name:"cacert" placeholder:"FILE" help:"File with the certificates of the authorities to trust, instead of the system's."`
	Cert         string   `group:"Server" placeholder:"FILE" help:"File with the certificate of this client."`
	Key          string   `group:"Server" placeholder:"FILE" help:"File with the key of that certificate."`
	Insecure     bool     `group:"Server" help:"Do not verify the certificate of the server."`
}

// Group is the name of the group of all Flags.
const Group = "Server"

const (
	// DefaultAddress is used without --redis and REDIS_URL.
	DefaultAddress = "127.0.0.1:6379"

	dialTimeout = 2 * time.Second // of one address
	answerTime  = 5 * time.Second // of all of them
)

// Client connects to the server, and returns after its first answer.
func (f Flags) Client(ctx context.Context) (rueidis.Client, error) {
	options, err := f.Options()
	if err != nil {
		return nil, err
	}
	// Several addresses are seeds of one cluster, as for rueidis.
	for _, o := range options[1:] {
		options[0].InitAddress = append(options[0].InitAddress, o.InitAddress...)
	}
	return Dial(ctx, options[0])
}

// Dial connects with these options, and returns after the server's first answer.
func Dial(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, error) {
	limit := answerTime
	if until, limited := ctx.Deadline(); limited {
		limit = min(limit, time.Until(until))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	failed := func(err error) error {
		if errors.Is(err, context.DeadlineExceeded) {
			if ctx.Err() == nil { // it was the dialer's limit, of one address
				limit = cmp.Or(option.Dialer.Timeout, limit)
			}
			err = fmt.Errorf("%w within %v", errSilent, limit.Round(time.Millisecond))
		}
		return status.New(status.Server, explain(err, option))
	}
	type result struct {
		client rueidis.Client
		err    error
	}
	dialed := make(chan result)
	go func() {
		client, err := rueidis.NewClient(option)
		// On a cluster PING may go to a node that is down, and one has told the topology.
		if err == nil && client.Mode() != rueidis.ClientModeCluster {
			err = client.Do(ctx, client.B().Ping().Build()).Error()
			if err != nil {
				client.Close()
			}
		}
		select {
		case dialed <- result{client, err}:
		case <-ctx.Done(): // NewClient has no context
			if err == nil {
				client.Close()
			}
		}
	}()
	select {
	case r := <-dialed:
		if r.err != nil {
			return nil, failed(r.err)
		}
		return r.client, nil
	case <-ctx.Done():
		return nil, failed(ctx.Err())
	}
}

// Options returns the options of one rueidis client for each address; with Sentinel there is one
// for all. There is at least one.
func (f Flags) Options() (all []rueidis.ClientOption, err error) {
	addresses, from := f.Redis, "--redis"
	if len(addresses) == 0 {
		addresses = []string{DefaultAddress}
		if u := os.Getenv("REDIS_URL"); u != "" {
			addresses, from = []string{u}, "REDIS_URL"
		}
	} else if err := refusePasswords(addresses); err != nil {
		return nil, usage(err)
	}
	for _, address := range addresses {
		option, err := parse(address, f.Sentinel != "")
		if err != nil {
			return nil, usage(fmt.Errorf("%s: %w", from, err))
		}
		if err := f.authenticate(&option); err != nil {
			return nil, usage(err)
		}
		if err := f.secure(&option); err != nil {
			return nil, usage(err)
		}
		option.Dialer.Timeout = cmp.Or(option.Dialer.Timeout, dialTimeout)
		option.ClientName = "holdfast"
		option.DisableCache = true // nothing is cached, and some services refuse it
		small(&option)
		all = append(all, option)
	}
	if master := cmp.Or(f.Sentinel, all[0].Sentinel.MasterSet); master != "" {
		one := all[0]
		for _, o := range all[1:] {
			one.InitAddress = append(one.InitAddress, o.InitAddress...)
		}
		one.Sentinel.MasterSet = master
		one.Sentinel.Dialer, one.Sentinel.TLSConfig = one.Dialer, one.TLSConfig
		all = []rueidis.ClientOption{one}
	}
	return all, nil
}

// small makes the client fit a program that sends few commands and soon ends: one connection, and
// buffers that it can allocate without a garbage collection.
func small(option *rueidis.ClientOption) {
	option.PipelineMultiplex = -1
	option.RingScaleEachConn = 8 // 256 commands
	option.ReadBufferEachConn, option.WriteBufferEachConn = 32<<10, 32<<10
}

// Endpoint returns the host name of the server, or "" if it has an address alone, or if there are
// several or Sentinels, from which clients learn where the server is.
func (f Flags) Endpoint() string {
	all, err := f.Options()
	if err != nil || len(all) != 1 || len(all[0].InitAddress) != 1 || all[0].Sentinel.MasterSet != "" {
		return ""
	}
	host, _, err := net.SplitHostPort(all[0].InitAddress[0])
	if err != nil || host == "localhost" || net.ParseIP(host) != nil {
		return "" // the path of a socket, or no name that could move
	}
	return host
}

// usage makes err one of the command line.
func usage(err error) error { return status.New(status.Usage, err) }

// parse returns the options for a host with or without a port, the path of a socket, or a URL. Its
// errors do not show what may be a password.
func parse(address string, ofSentinel bool) (option rueidis.ClientOption, err error) {
	port := "6379"
	if ofSentinel {
		port = "26379"
	}
	switch {
	case strings.HasPrefix(address, "/"):
		address = (&url.URL{Scheme: "unix", Path: address}).String()
		fallthrough
	case strings.Contains(address, "://"):
		option, err = rueidis.ParseURL(address)
		if err != nil {
			return option, errors.New("cannot read the URL; use the form redis://user@host:port/db")
		}
	default:
		if host := strings.Trim(address, "[]"); address != "" &&
			(!strings.Contains(address, ":") || net.ParseIP(host) != nil) {
			address = net.JoinHostPort(host, port)
		}
		_, _, err = net.SplitHostPort(address)
		if err != nil || strings.Contains(address, "@") {
			return option, errors.New("cannot read the address; use host, host:port, " +
				"redis://user@host:port/db, or /path/of/socket")
		}
		option.InitAddress = []string{address}
	}
	return option, nil
}

// refusePasswords returns an error if an address of the command line has a password.
func refusePasswords(addresses []string) error {
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil || u.User == nil {
			continue
		}
		if _, has := u.User.Password(); has {
			return errors.New("--redis must not contain a password, because all users of this machine " +
				"can read the command line; put the URL into REDIS_URL, or the password into " +
				"REDISCLI_AUTH or --password-file")
		}
	}
	return nil
}

// authenticate sets the user and the password: that of the file, else of the URL, else of the
// environment, as redis-cli has it.
func (f Flags) authenticate(option *rueidis.ClientOption) error {
	option.Username = cmp.Or(f.User, option.Username)
	option.Password = cmp.Or(option.Password, os.Getenv("REDISCLI_AUTH"))
	if f.PasswordFile == "" {
		return nil
	}
	text, err := os.ReadFile(f.PasswordFile)
	if err != nil {
		return fmt.Errorf("--password-file: %w", err)
	}
	option.Password = strings.TrimRight(string(text), "\r\n")
	if option.Password == "" {
		return fmt.Errorf("--password-file: %s is empty; put the password into the first line",
			f.PasswordFile)
	}
	return nil
}

// secure sets what TLS needs.
func (f Flags) secure(option *rueidis.ClientOption) error {
	if !f.TLS && option.TLSConfig == nil {
		if f.CACert != "" || f.Cert != "" || f.Key != "" || f.Insecure {
			return errors.New("--cacert, --cert, --key, and --insecure work only with TLS; " +
				"add --tls, or use a rediss:// URL")
		}
		return nil
	}
	if option.TLSConfig == nil {
		option.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	option.TLSConfig.InsecureSkipVerify = f.Insecure || option.TLSConfig.InsecureSkipVerify
	if f.CACert != "" {
		text, err := os.ReadFile(f.CACert)
		if err != nil {
			return fmt.Errorf("--cacert: %w", err)
		}
		option.TLSConfig.RootCAs = x509.NewCertPool()
		if !option.TLSConfig.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("--cacert: %s contains no certificate; use a file in PEM format", f.CACert)
		}
	}
	if (f.Cert == "") != (f.Key == "") {
		return errors.New("--cert and --key belong together; pass both")
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return fmt.Errorf("--cert and --key: %w", err)
		}
		option.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	return nil
}
