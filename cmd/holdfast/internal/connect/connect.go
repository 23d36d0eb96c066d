// Package connect makes rueidis clients from the flags and the environment of the program.
package connect

import (
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
	Redis        []string `group:"Server" short:"r" placeholder:"ADDR" sep:"none" help:"host:port, or redis://user@host:port/db; rediss:// for TLS. The default is the URL in REDIS_URL, or 127.0.0.1:6379. A cluster is recognised."`
	Sentinel     string   `group:"Server" placeholder:"MASTER" help:"The addresses are those of Sentinels, which know MASTER."`
	User         string   `group:"Server" placeholder:"NAME" help:"User of the ACL. The password is in REDISCLI_AUTH, or in a file."`
	PasswordFile string   `group:"Server" placeholder:"FILE" help:"File with the password."`
	TLS          bool     `group:"Server" name:"tls" help:"Use TLS, as rediss:// does."`
	CACert       string   `group:"Server" name:"cacert" placeholder:"FILE" help:"Certificates of authorities to trust, besides none."`
	Cert         string   `group:"Server" placeholder:"FILE" help:"Certificate of this client."`
	Key          string   `group:"Server" placeholder:"FILE" help:"Key of that certificate."`
	Insecure     bool     `group:"Server" help:"Do not verify the server's certificate."`
}

const (
	// DefaultAddress is used without --redis and REDIS_URL.
	DefaultAddress = "127.0.0.1:6379"

	dialTimeout = 2 * time.Second
	pingTimeout = 3 * time.Second
)

// Client connects to the server, and returns after its first answer.
func (f Flags) Client(ctx context.Context) (rueidis.Client, error) {
	options, err := f.Options()
	if err != nil {
		return nil, err
	}
	if len(options) > 1 && f.Sentinel == "" {
		// Several addresses are seeds of one cluster, as for rueidis.
		for _, o := range options[1:] {
			options[0].InitAddress = append(options[0].InitAddress, o.InitAddress...)
		}
	}
	return Dial(ctx, options[0])
}

// Dial connects with these options, and returns after the server's first answer.
func Dial(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, error) {
	where := strings.Join(option.InitAddress, ",")
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, status.New(status.Server, fmt.Errorf("cannot reach Redis at %s: %w", where, err))
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := client.Do(ctx, client.B().Ping().Build()).Error(); err != nil {
		client.Close()
		return nil, status.New(status.Server,
			fmt.Errorf("no answer to PING from Redis at %s: %w", where, err))
	}
	return client, nil
}

// Options returns the options of one rueidis client for each address; with Sentinel there is one
// for all. There is at least one.
func (f Flags) Options() (all []rueidis.ClientOption, err error) {
	addresses := f.Redis
	if len(addresses) == 0 {
		addresses = []string{DefaultAddress}
		if u := os.Getenv("REDIS_URL"); u != "" {
			addresses = []string{u}
		}
	} else if err := refusePasswords(addresses); err != nil {
		return nil, usage(err)
	}
	secret, err := f.password()
	if err != nil {
		return nil, usage(err)
	}
	for _, address := range addresses {
		option, err := parse(address)
		if err != nil {
			return nil, usage(err)
		}
		if f.User != "" {
			option.Username = f.User
		}
		if option.Password == "" {
			option.Password = secret
		}
		if option.Dialer.Timeout == 0 {
			option.Dialer.Timeout = dialTimeout
		}
		if err := f.secure(&option); err != nil {
			return nil, usage(err)
		}
		option.ClientName = "holdfast"
		all = append(all, option)
	}
	if f.Sentinel != "" {
		one := all[0]
		one.InitAddress = nil
		for _, o := range all {
			one.InitAddress = append(one.InitAddress, o.InitAddress...)
		}
		one.Sentinel.MasterSet = f.Sentinel
		one.Sentinel.Dialer, one.Sentinel.TLSConfig = one.Dialer, one.TLSConfig
		all = []rueidis.ClientOption{one}
	}
	return all, nil
}

// usage makes err one of the command line.
func usage(err error) error { return status.New(status.Usage, err) }

// parse returns the options for host:port or a URL.
func parse(address string) (option rueidis.ClientOption, err error) {
	if strings.Contains(address, "://") {
		option, err = rueidis.ParseURL(address)
	} else if _, _, err = net.SplitHostPort(address); err == nil {
		option.InitAddress = []string{address}
	}
	if err != nil {
		err = fmt.Errorf("--redis: want host:port or redis://host:port/db: %w", hide(err, address))
	}
	return option, err
}

// hide returns err without its text if that may show a password.
func hide(err error, address string) error {
	if strings.Contains(address, "@") {
		return errors.New("the URL cannot be read")
	}
	return err
}

// refusePasswords returns an error if an address of the command line has a password.
func refusePasswords(addresses []string) error {
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil || u.User == nil {
			continue
		}
		if _, has := u.User.Password(); has {
			return errors.New("--redis: a password on the command line can be read by all users of " +
				"this machine: put the URL into REDIS_URL, or the password into REDISCLI_AUTH or " +
				"--password-file")
		}
	}
	return nil
}

// password returns the password of the file, or of the environment, as redis-cli has it.
func (f Flags) password() (string, error) {
	if f.PasswordFile == "" {
		return os.Getenv("REDISCLI_AUTH"), nil
	}
	text, err := os.ReadFile(f.PasswordFile)
	return strings.TrimRight(string(text), "\r\n"), err
}

// secure sets what TLS needs.
func (f Flags) secure(option *rueidis.ClientOption) error {
	if !f.TLS && option.TLSConfig == nil {
		if f.CACert != "" || f.Cert != "" || f.Key != "" || f.Insecure {
			return errors.New("--cacert, --cert, --key and --insecure need --tls or rediss://")
		}
		return nil
	}
	if option.TLSConfig == nil {
		option.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	option.TLSConfig.InsecureSkipVerify = f.Insecure
	if f.CACert != "" {
		text, err := os.ReadFile(f.CACert)
		if err != nil {
			return err
		}
		option.TLSConfig.RootCAs = x509.NewCertPool()
		if !option.TLSConfig.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("--cacert: no certificate in %s", f.CACert)
		}
	}
	if f.Cert != "" || f.Key != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return err
		}
		option.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	return nil
}
