package goredis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/go-redis/v9/push"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/goredis"
)

// decision is what ClientOption does with a field.
type decision string

const (
	followed = decision("followed")
	rejected = decision("rejected")
	ignored  = decision("ignored")
)

// decisions has the fields of the options of all clients. A field that has another decision in some
// options has the name of the options in front of it.
var decisions = map[decision]string{
	followed: `Network Addr Addrs Dialer TLSConfig Username Password CredentialsProvider
		CredentialsProviderContext DB ClientName Protocol DialTimeout ConnMaxLifetime DisableIdentity
		DisableIndentity MasterName SentinelAddrs SentinelUsername SentinelPassword IsClusterMode
		ClusterStateReloadInterval`,
	rejected: `OnConnect StreamingCredentialsProvider NewClient ClusterSlots
		FailoverOptions.CredentialsProvider FailoverOptions.CredentialsProviderContext`,
	ignored: `AutoPipelineOptions ClientSideCache ClientSideCacheConfig ClientSideCacheStrategy
		ConnMaxIdleTime ConnMaxLifetimeJitter ContextTimeoutEnabled DialerRetries DialerRetryBackoff
		DialerRetryTimeout DisableRoutingPolicies FailingTimeoutSeconds IdentitySuffix Limiter
		MaintNotificationsConfig MaxActiveConns MaxConcurrentDials MaxIdleConns MaxRedirects MaxRetries
		MaxRetryBackoff MinIdleConns MinRetryBackoff NodeAddress PipelinePoolSize
		PipelineReadBufferSize PipelineWriteBufferSize PoolFIFO PoolSize PoolTimeout
		PushNotificationProcessor ReadBufferSize ReadOnly ReadTimeout ReplicaOnly RouteByLatency
		RouteRandomly ShardPicker UnstableResp3 UseDisconnectedReplicas WriteBufferSize WriteTimeout`,
}

// decided returns the decision about a field, or "".
func decided(options, field string) decision {
	for _, name := range []string{options + "." + field, field} {
		for d, names := range decisions {
			if slices.Contains(strings.Fields(names), name) {
				return d
			}
		}
	}
	return ""
}

// Foreign code for fields that are interfaces.
type (
	limiter   struct{}
	streaming struct{}
)

func (limiter) Allow() error       { return nil }
func (limiter) ReportResult(error) {}

func (streaming) Subscribe(auth.CredentialsListener,
) (auth.Credentials, auth.UnsubscribeFunc, error) {
	return nil, nil, errors.New("not called")
}

// sample returns a value for a field, other than its default.
func sample(t *testing.T, name string, of reflect.Type) reflect.Value {
	t.Helper()
	switch name {
	case "Network":
		return reflect.ValueOf("tcp6")
	case "Addrs", "SentinelAddrs":
		return reflect.ValueOf([]string{"10.0.0.7:7001"})
	case "Protocol":
		return reflect.ValueOf(2)
	case "Limiter":
		return reflect.ValueOf(limiter{})
	case "StreamingCredentialsProvider":
		return reflect.ValueOf(streaming{})
	case "PushNotificationProcessor":
		return reflect.ValueOf(push.NewProcessor())
	case "ClientSideCache":
		return reflect.ValueOf(redis.NewLocalCache(redis.ClientSideCacheConfig{}))
	case "ShardPicker": // of an internal package
		used := &redis.ClusterOptions{}
		require.NoError(t, redis.NewClusterClient(used).Close())
		return reflect.ValueOf(used.ShardPicker)
	}
	value := reflect.New(of).Elem()
	switch of.Kind() { //nolint:exhaustive // the default is an error
	case reflect.String:
		value.SetString("10.0.0.7:7000")
	case reflect.Int, reflect.Int64:
		value.SetInt(7)
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Func:
		value = reflect.MakeFunc(of, func([]reflect.Value) []reflect.Value { return nil })
	case reflect.Pointer:
		value = reflect.New(of.Elem())
	default:
		require.Failf(t, "no sample", "for the field %s, of type %v", name, of)
	}
	return value
}

// text returns all of a value that two results can differ in.
func text(option rueidis.ClientOption) string { return fmt.Sprintf("%#v", option) }

// outcome returns what ClientOption does with a field of options, which are valid without it.
func outcome[O goredis.Options](t *testing.T, options O, field reflect.StructField) decision {
	t.Helper()
	before, err := goredis.ClientOption(options)
	require.NoError(t, err)
	changed := reflect.New(reflect.TypeOf(options).Elem())
	changed.Elem().Set(reflect.ValueOf(options).Elem())
	changed.Elem().FieldByIndex(field.Index).Set(sample(t, field.Name, field.Type))
	after, err := goredis.ClientOption(changed.Interface().(O))
	switch {
	case err != nil:
		require.ErrorContains(t, err, field.Name, "the error has to name the field")
		return rejected
	case text(before) != text(after):
		return followed
	default:
		return ignored
	}
}

// checkFields fails for each exported field that ClientOption treats otherwise than decided.
func checkFields[O goredis.Options](t *testing.T, bases ...O) {
	t.Helper()
	options := reflect.TypeOf(bases[0]).Elem()
	for _, field := range reflect.VisibleFields(options) {
		if !field.IsExported() {
			continue
		}
		want := decided(options.Name(), field.Name)
		if want == "" {
			t.Errorf("redis.%s has a field %s, about which nobody has decided: does a lock need it?",
				options.Name(), field.Name)
			continue
		}
		got := ignored
		for _, base := range bases {
			if o := outcome(t, base, field); o == followed || got == ignored {
				got = o
			}
		}
		if got != want {
			t.Errorf("redis.%s.%s is %s, want it %s", options.Name(), field.Name, got, want)
		}
	}
}

// A field that a new release of go-redis adds fails this test until somebody decides about it.
func TestEachFieldIsFollowedRejectedOrIgnoredAsDecided(t *testing.T) {
	checkFields(t, &redis.Options{Password: "p"})
	checkFields(t, &redis.FailoverOptions{
		MasterName: "m", SentinelAddrs: []string{"a:1"}, Password: "p", SentinelPassword: "p",
	})
	checkFields(t, &redis.ClusterOptions{Addrs: []string{"a:1"}, Password: "p"})
	checkFields(t, &redis.UniversalOptions{Addrs: []string{"a:1"}, Password: "p"},
		&redis.UniversalOptions{MasterName: "m", Password: "p", SentinelPassword: "p"})
}

// The page lists what happens to each field.
func TestPageListsEachField(t *testing.T) {
	page, err := os.ReadFile("../docs/go-redis.md")
	require.NoError(t, err)
	for _, names := range decisions {
		for _, name := range strings.Fields(names) {
			name = name[strings.LastIndexByte(name, '.')+1:]
			require.Contains(t, string(page), "`"+name+"`")
		}
	}
}

func TestFieldsOfASingleServer(t *testing.T) {
	trust := &tls.Config{MinVersion: tls.VersionTLS13}
	option, err := goredis.ClientOption(&redis.Options{
		Addr: "10.0.0.7:6380", TLSConfig: trust, Username: "shop", Password: "secret", DB: 3,
		ClientName: "checkout", Protocol: 2, DialTimeout: time.Second, ConnMaxLifetime: time.Minute,
		DisableIdentity: true,
	})
	require.NoError(t, err)
	want := rueidis.ClientOption{
		InitAddress: []string{"10.0.0.7:6380"}, ForceSingleClient: true, TLSConfig: trust,
		Username: "shop", Password: "secret", SelectDB: 3, ClientName: "checkout", AlwaysRESP2: true,
		DisableCache: true, ConnLifetime: time.Minute, ClientSetInfo: rueidis.DisableClientSetInfo,
	}
	want.Dialer.Timeout = time.Second
	require.Equal(t, want, option)

	option, err = goredis.ClientOption(new(redis.Options))
	require.NoError(t, err)
	require.Equal(t, rueidis.ClientOption{
		InitAddress: []string{"localhost:6379"}, ForceSingleClient: true, DisableCache: true,
	}, option)
}

func TestFieldsOfSentinels(t *testing.T) {
	trust := new(tls.Config)
	option, err := goredis.ClientOption(&redis.FailoverOptions{
		MasterName: "mymaster", SentinelAddrs: []string{"s1:26379", "s2:26379"}, TLSConfig: trust,
		SentinelUsername: "watch", SentinelPassword: "other", Username: "shop", Password: "secret",
		DB: 3, ClientName: "checkout", DialTimeout: time.Second,
	})
	require.NoError(t, err)
	want := rueidis.ClientOption{
		InitAddress: []string{"s1:26379", "s2:26379"}, TLSConfig: trust, Username: "shop",
		Password: "secret", SelectDB: 3, ClientName: "checkout", DisableCache: true,
		Sentinel: rueidis.SentinelOption{
			MasterSet: "mymaster", TLSConfig: trust, Username: "watch", Password: "other",
			ClientName: "checkout", TopologyRefreshInterval: 5 * time.Second,
		},
	}
	want.Dialer.Timeout, want.Sentinel.Dialer.Timeout = time.Second, time.Second
	require.Equal(t, want, option)
}

func TestFieldsOfACluster(t *testing.T) {
	used := &redis.ClusterOptions{Addrs: []string{"n1:7001"}, Username: "shop", Password: "secret"}
	want := rueidis.ClientOption{
		InitAddress: []string{"n1:7001"}, Username: "shop", Password: "secret", DisableCache: true,
		ClusterOption: rueidis.ClusterOption{ShardsRefreshInterval: time.Minute},
	}
	option, err := goredis.ClientOption(used)
	require.NoError(t, err)
	require.Equal(t, want, option)
	option.InitAddress[0] = "elsewhere:1"
	require.Equal(t, []string{"n1:7001"}, used.Addrs, "the options are the caller's")

	client := redis.NewClusterClient(used) // sets defaults in the options
	require.NoError(t, client.Close())
	option, err = goredis.ClientOption(client.Options())
	require.NoError(t, err)
	want.Dialer.Timeout = 5 * time.Second
	require.Equal(t, want, option)

	used.ClusterStateReloadInterval = 10 * time.Second
	option, err = goredis.ClientOption(used)
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, option.ClusterOption.ShardsRefreshInterval)
}

func TestUniversalOptionsChooseTheClientAsInGoRedis(t *testing.T) {
	for _, c := range []struct {
		options                   redis.UniversalOptions
		single, sentinel, cluster bool
		addresses                 []string
	}{
		{options: redis.UniversalOptions{}, single: true, addresses: []string{"127.0.0.1:6379"}},
		{options: redis.UniversalOptions{Addrs: []string{"a:1"}, DB: 1}, single: true,
			addresses: []string{"a:1"}},
		{options: redis.UniversalOptions{Addrs: []string{"a:1", "b:2"}}, cluster: true,
			addresses: []string{"a:1", "b:2"}},
		{options: redis.UniversalOptions{IsClusterMode: true}, cluster: true,
			addresses: []string{"127.0.0.1:6379"}},
		{options: redis.UniversalOptions{MasterName: "m", Addrs: []string{"a:1", "b:2"}},
			sentinel: true, addresses: []string{"a:1", "b:2"}},
		{options: redis.UniversalOptions{MasterName: "m", IsClusterMode: true}, sentinel: true,
			addresses: []string{"127.0.0.1:26379"}},
	} {
		before := c.options
		option, err := goredis.ClientOption(&c.options)
		require.NoError(t, err)
		require.Equal(t, c.addresses, option.InitAddress)
		require.Equal(t, c.single, option.ForceSingleClient)
		require.Equal(t, c.sentinel, option.Sentinel.MasterSet != "")
		require.Equal(t, c.cluster, option.ClusterOption.ShardsRefreshInterval != 0)
		require.Equal(t, c.options.DB, option.SelectDB)
		require.Equal(t, before, c.options, "the options are the caller's")
	}
}

func TestUserWithoutPasswordStaysTheDefaultUserAsInGoRedis(t *testing.T) {
	option, err := goredis.ClientOption(&redis.FailoverOptions{
		MasterName: "m", SentinelAddrs: []string{"a:1"}, Username: "shop", SentinelUsername: "watch",
	})
	require.NoError(t, err)
	require.Empty(t, option.Username)
	require.Empty(t, option.Sentinel.Username)
}

func TestProviderOfCredentialsIsAskedForEachConnection(t *testing.T) {
	asked := 0
	options := &redis.Options{
		Username: "not used", Password: "not used",
		CredentialsProvider: func() (string, string) {
			asked++
			return "shop", fmt.Sprint("secret", asked)
		},
	}
	option, err := goredis.ClientOption(options)
	require.NoError(t, err)
	for _, password := range []string{"secret1", "secret2"} {
		got, err := option.AuthCredentialsFn(rueidis.AuthCredentialsContext{})
		require.NoError(t, err)
		require.Equal(t, rueidis.AuthCredentials{Username: "shop", Password: password}, got)
	}

	vault := errors.New("the vault is closed")
	options.CredentialsProviderContext = func(ctx context.Context) (string, string, error) {
		_, limited := ctx.Deadline()
		require.True(t, limited, "a provider that hangs must not stop a connection for ever")
		return "", "", vault
	}
	option, err = goredis.ClientOption(options)
	require.NoError(t, err)
	_, err = option.AuthCredentialsFn(rueidis.AuthCredentialsContext{})
	require.ErrorIs(t, err, vault)
}

func TestDialerGetsNetworkAddressAndALimit(t *testing.T) {
	here, there := net.Pipe()
	t.Cleanup(func() { _ = here.Close(); _ = there.Close() })
	option, err := goredis.ClientOption(&redis.Options{
		Addr: "/run/redis.sock", DialTimeout: time.Hour,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			_, limited := ctx.Deadline()
			require.True(t, limited)
			require.Equal(t, "unix", network)
			require.Equal(t, "/run/redis.sock", addr)
			return here, nil
		},
	})
	require.NoError(t, err)
	conn, err := option.DialCtxFn(t.Context(), "/run/redis.sock", nil, nil)
	require.NoError(t, err)
	require.Same(t, here, conn)
}

// A caller of holdfast leaves a dial to a worker: the context that it dials with has ended.
func TestDialerIsNotCalledForACallerThatHasLeft(t *testing.T) {
	option, err := goredis.ClientOption(&redis.ClusterOptions{
		Addrs: []string{"a:1"},
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			panic("a dialer that does not look at its context would hold up the caller")
		},
	})
	require.NoError(t, err)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	record := &recorder{Context: ctx}
	_, err = option.DialCtxFn(record, "a:1", nil, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "Done", record.calls[0], "by this call package transport knows a dial")
}

// recorder is a context that records which of these methods were called.
type recorder struct {
	context.Context
	calls []string
}

func (r *recorder) Done() <-chan struct{} {
	r.calls = append(r.calls, "Done")
	return r.Context.Done()
}

func (r *recorder) Err() error {
	r.calls = append(r.calls, "Err")
	return r.Context.Err()
}

func TestOptionsWithoutServersAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		convert func() (rueidis.ClientOption, error)
		says    []string
	}{
		"nil": {func() (rueidis.ClientOption, error) {
			return goredis.ClientOption((*redis.UniversalOptions)(nil))
		}, []string{"the options are nil"}},
		"no Sentinels and no master": {func() (rueidis.ClientOption, error) {
			return goredis.ClientOption(&redis.FailoverOptions{})
		}, []string{"MasterName is empty", "SentinelAddrs is empty"}},
		"no nodes": {func() (rueidis.ClientOption, error) {
			return goredis.ClientOption(&redis.ClusterOptions{})
		}, []string{"Addrs is empty"}},
		"a client of Sentinels": {func() (rueidis.ClientOption, error) {
			client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m"})
			defer func() { require.NoError(t, client.Close()) }()
			return goredis.ClientOption(client.Options())
		}, []string{"pass the redis.FailoverOptions"}},
		"a cluster client of Sentinels": {func() (rueidis.ClientOption, error) {
			client := redis.NewFailoverClusterClient(&redis.FailoverOptions{MasterName: "m"})
			defer func() { require.NoError(t, client.Close()) }()
			return goredis.ClientOption(client.Options())
		}, []string{"redis.FailoverOptions"}},
	} {
		option, err := c.convert()
		for _, says := range c.says {
			require.ErrorContains(t, err, says, name)
		}
		require.Equal(t, rueidis.ClientOption{}, option, name)
	}
}
