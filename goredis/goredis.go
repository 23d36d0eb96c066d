package goredis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/rueidis"
)

// Options are the options of a go-redis client.
type Options interface {
	*redis.Options | *redis.FailoverOptions | *redis.ClusterOptions | *redis.UniversalOptions
}

// NewClient opens a rueidis client for locks. NewClient connects at once, and waits for each server
// for at most DialTimeout, or 5 s without a DialTimeout. If [ClientOption] rejects the options,
// NewClient returns an error. Otherwise NewClient returns what rueidis.NewClient returns. With
// redis.Options, this is an error together with a client if the server does not respond. You may
// close that client, or use it, because it connects later.
//
// Close the client after the rlock.Client that uses it.
func NewClient[O Options](options O) (rueidis.Client, error) {
	option, err := ClientOption(options)
	if err != nil {
		return nil, err
	}
	return rueidis.NewClient(option)
}

// ClientOption translates the options of a go-redis client to the options of a rueidis client for
// the same servers. ClientOption does not connect. The package comment lists the fields that
// ClientOption applies, rejects and ignores. ClientOption does not change options, and you may
// change the result. The result shares the TLSConfig and the functions of options.
//
// ClientOption treats a redis.UniversalOptions as redis.NewUniversalClient does. The Options of an
// existing redis.Client or redis.ClusterClient work too, unless the client found its master through
// Sentinels. In this case, pass the redis.FailoverOptions.
//
// The error names all rejected fields. Clear these fields in a copy of options, and set their
// counterparts in the result.
func ClientOption[O Options](options O) (rueidis.ClientOption, error) {
	if options == nil {
		return rueidis.ClientOption{}, errors.New("goredis: the options are nil; pass the options of " +
			"the go-redis client")
	}
	var (
		option rueidis.ClientOption
		err    error
	)
	switch o := any(options).(type) {
	case *redis.Options:
		option, err = single(o)
	case *redis.FailoverOptions:
		option, err = sentinel(o)
	case *redis.ClusterOptions:
		option, err = cluster(o)
	case *redis.UniversalOptions:
		option, err = universal(o)
	}
	if err != nil {
		return rueidis.ClientOption{}, err
	}
	return option, nil
}

// Intervals at which rueidis looks for changes of the servers, besides the events that it notices.
const (
	sentinelRefresh = 5 * time.Second // recommended by rueidis
	clusterRefresh  = time.Minute     // the default of go-redis
)

// ofSentinels is the address in the options that a redis.Client with Sentinels returns.
const ofSentinels = "FailoverClient"

// universal returns the options of the client that redis.NewUniversalClient would make.
func universal(o *redis.UniversalOptions) (rueidis.ClientOption, error) {
	own := *o // because go-redis adds a default address
	switch {
	case o.MasterName != "":
		return sentinel(own.Failover())
	case len(o.Addrs) > 1 || o.IsClusterMode:
		return cluster(own.Cluster())
	default:
		return single(own.Simple())
	}
}

func single(o *redis.Options) (rueidis.ClientOption, error) {
	address := cmp.Or(o.Addr, "localhost:6379")
	network := o.Network
	if network == "" && strings.HasPrefix(address, "/") {
		network = "unix"
	}
	option, problems := connection{
		network: network, dialer: o.Dialer, onConnect: o.OnConnect, tls: o.TLSConfig,
		username: o.Username, password: o.Password, provider: o.CredentialsProvider,
		contextProvider: o.CredentialsProviderContext, streaming: o.StreamingCredentialsProvider,
		clientName: o.ClientName,
		anonymous:  o.DisableIdentity || o.DisableIndentity, //nolint:staticcheck // go-redis follows both
		protocol:   o.Protocol, dialTimeout: o.DialTimeout, lifetime: o.ConnMaxLifetime,
	}.option()
	if o.Addr == ofSentinels {
		problems = append(problems, "these are the options of a client that found its master through "+
			"Sentinels; pass the redis.FailoverOptions of that client")
	}
	option.InitAddress = []string{address}
	option.SelectDB = o.DB
	option.ForceSingleClient = true
	return option, rejected(problems)
}

func sentinel(o *redis.FailoverOptions) (rueidis.ClientOption, error) {
	option, problems := connection{
		dialer: o.Dialer, onConnect: o.OnConnect, tls: o.TLSConfig,
		username: o.Username, password: o.Password, streaming: o.StreamingCredentialsProvider,
		clientName: o.ClientName,
		anonymous:  o.DisableIdentity || o.DisableIndentity, //nolint:staticcheck // go-redis follows both
		protocol:   o.Protocol, dialTimeout: o.DialTimeout, lifetime: o.ConnMaxLifetime,
	}.option()
	if o.CredentialsProvider != nil || o.CredentialsProviderContext != nil {
		problems = append(problems, "CredentialsProvider and CredentialsProviderContext would also "+
			"send their passwords to the Sentinels; set Username and Password, or set AuthCredentialsFn "+
			"in the result if the Sentinels have the same users")
	}
	if o.MasterName == "" {
		problems = append(problems, "MasterName is empty; set the name by which the Sentinels know the "+
			"master")
	}
	if len(o.SentinelAddrs) == 0 {
		problems = append(problems, "SentinelAddrs is empty; add the addresses of the Sentinels")
	}
	option.InitAddress = append(option.InitAddress, o.SentinelAddrs...)
	option.SelectDB = o.DB
	option.Sentinel = rueidis.SentinelOption{
		MasterSet: o.MasterName, ClientName: o.ClientName,
		Dialer: option.Dialer, TLSConfig: option.TLSConfig,
		TopologyRefreshInterval: sentinelRefresh,
	}
	option.Sentinel.Username, option.Sentinel.Password =
		credentials(o.SentinelUsername, o.SentinelPassword)
	return option, rejected(problems)
}

func cluster(o *redis.ClusterOptions) (rueidis.ClientOption, error) {
	option, problems := connection{
		dialer: o.Dialer, onConnect: o.OnConnect, tls: o.TLSConfig,
		username: o.Username, password: o.Password, provider: o.CredentialsProvider,
		contextProvider: o.CredentialsProviderContext, streaming: o.StreamingCredentialsProvider,
		clientName: o.ClientName,
		anonymous:  o.DisableIdentity || o.DisableIndentity, //nolint:staticcheck // go-redis follows both
		protocol:   o.Protocol, dialTimeout: o.DialTimeout, lifetime: o.ConnMaxLifetime,
	}.option()
	if o.NewClient != nil && !isDefault(o.NewClient) {
		problems = append(problems, "the field NewClient may change the options of a node, and rueidis "+
			"cannot call it; make the same changes in the result")
	}
	if o.ClusterSlots != nil {
		problems = append(problems, "ClusterSlots chooses the servers itself, and rueidis cannot call "+
			"it; pass the options of a real cluster, or the redis.FailoverOptions if the client found "+
			"its servers through Sentinels")
	} else if len(o.Addrs) == 0 {
		problems = append(problems, "Addrs is empty; add the addresses of some nodes")
	}
	option.InitAddress = append(option.InitAddress, o.Addrs...)
	option.ClusterOption.ShardsRefreshInterval = clusterRefresh
	if o.ClusterStateReloadInterval > 0 {
		option.ClusterOption.ShardsRefreshInterval = o.ClusterStateReloadInterval
	}
	return option, rejected(problems)
}

// isDefault reports whether a function is redis.NewClient, which redis.NewClusterClient sets in the
// options that it is called with.
func isDefault(newClient func(*redis.Options) *redis.Client) bool {
	return reflect.ValueOf(newClient).Pointer() == reflect.ValueOf(redis.NewClient).Pointer()
}

// connection has the fields that the options of all clients share.
type connection struct {
	network            string // "" is TCP
	dialer             func(ctx context.Context, network, addr string) (net.Conn, error)
	onConnect          func(ctx context.Context, cn *redis.Conn) error
	tls                *tls.Config
	username, password string
	provider           func() (username, password string)
	contextProvider    func(ctx context.Context) (username, password string, err error)
	streaming          auth.StreamingCredentialsProvider
	clientName         string
	anonymous          bool
	protocol           int
	dialTimeout        time.Duration
	lifetime           time.Duration
}

// option returns the options of rueidis without addresses, and what is wrong.
func (c connection) option() (option rueidis.ClientOption, problems []string) {
	if c.onConnect != nil {
		problems = append(problems, "OnConnect may select a database or a user, and works only on "+
			"connections of go-redis; set SelectDB or the user in the result instead")
	}
	if c.streaming != nil {
		problems = append(problems, "StreamingCredentialsProvider has no counterpart in rueidis; set "+
			"AuthCredentialsFn in the result, which returns the credentials and when to ask again")
	}
	option.Username, option.Password = credentials(c.username, c.password)
	option.AuthCredentialsFn = c.authenticate()
	option.ClientName = c.clientName
	option.DisableCache = true // locks cache nothing, and some services reject CLIENT TRACKING
	option.AlwaysRESP2 = c.protocol == 2
	option.TLSConfig = c.tls
	option.DialCtxFn = c.dial()
	option.Dialer.Timeout = max(0, c.dialTimeout) // 0 is 5 s in rueidis, too
	option.ConnLifetime = max(0, c.lifetime)
	if c.anonymous {
		option.ClientSetInfo = rueidis.DisableClientSetInfo
	}
	return option, problems
}

// timeout returns how long a connection may take.
func (c connection) timeout() time.Duration {
	if c.dialTimeout <= 0 {
		return rueidis.DefaultDialTimeout
	}
	return c.dialTimeout
}

// credentials returns a user and a password for rueidis. go-redis stays the default user if there
// is no password, but rueidis would authenticate.
func credentials(username, password string) (string, string) {
	if password == "" {
		return "", ""
	}
	return username, password
}

// provide returns the credentials for a connection from the provider that go-redis would ask.
func (c connection) provide(ctx context.Context) (username, password string, err error) {
	if c.contextProvider != nil {
		return c.contextProvider(ctx)
	}
	username, password = c.provider()
	return username, password, nil
}

type (
	authenticate = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error)
	dial         = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)
)

// authenticate returns what asks the provider of credentials, or nil if there is none.
func (c connection) authenticate() authenticate {
	if c.provider == nil && c.contextProvider == nil {
		return nil
	}
	return func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		ctx, cancel := context.WithTimeout(context.Background(), c.timeout())
		defer cancel()
		username, password, err := c.provide(ctx)
		if err != nil {
			return rueidis.AuthCredentials{}, fmt.Errorf("goredis: the credentials provider failed: %w",
				err)
		}
		username, password = credentials(username, password)
		return rueidis.AuthCredentials{Username: username, Password: password}, nil
	}
}

// dial returns what makes connections, or nil if rueidis can do so itself.
func (c connection) dial() dial {
	network := cmp.Or(c.network, "tcp")
	switch {
	case c.dialer != nil:
		return func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config,
		) (net.Conn, error) {
			// A caller that cannot wait for a dial has a context that has ended, but the dialer may not
			// look at the context. Package transport depends on Done being called before Err.
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			default:
			}
			ctx, cancel := context.WithTimeout(ctx, c.timeout())
			defer cancel()
			return c.dialer(ctx, network, address)
		}
	case network == "tcp":
		return nil
	case c.tls != nil:
		return func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config,
		) (net.Conn, error) {
			return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, network, address)
		}
	default:
		return func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config,
		) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		}
	}
}

// rejected returns an error with all problems, or nil if there are none.
func rejected(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return errors.New("goredis: " + strings.Join(problems, "\n\t"))
}
