package redissonyaml_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/redissonyaml"
	"holdfast/rlock"
)

// loadSpring reads a YAML file of Spring that can be followed.
func loadSpring(t *testing.T, file string, handled ...string) *redissonyaml.Config {
	t.Helper()
	config, err := redissonyaml.LoadSpringYAML(strings.NewReader(file),
		redissonyaml.Options{Handled: handled})
	require.NoError(t, err)
	return config
}

// rejectSpring returns what is wrong with a YAML file of Spring.
func rejectSpring(t *testing.T, file string) *redissonyaml.Error {
	t.Helper()
	_, err := redissonyaml.LoadSpringYAML(strings.NewReader(file), redissonyaml.Options{})
	var wrong *redissonyaml.Error
	require.ErrorAs(t, err, &wrong)
	return wrong
}

func TestSpringSingleServerIsFollowed(t *testing.T) {
	redis := rueidis.ClientOption{
		InitAddress: []string{"10.0.0.7:6380"}, Username: "shop", Password: "s3cret", SelectDB: 3,
		ClientName: "checkout", ForceSingleClient: true,
	}
	redis.Dialer.Timeout = 1500 * time.Millisecond
	config := loadSpring(t, `
server.port: 8080
spring:
  application: {name: shop}
  data:
    redis:
      host: 10.0.0.7
      port: 6380
      username: shop
      password: s3cret
      database: 3
      clientName: checkout
      connect-timeout: 1500
      timeout: 2s
      lettuce:
        pool:
          enabled: true
`)
	require.Equal(t, redis, config.Redis)
	require.Equal(t, rlock.Options{CommandTimeout: 2 * time.Second}, config.Locks)
	require.Equal(t, "spring.data.redis.lettuce.pool.enabled", noted(t, config, 17).Key)

	config, err := redissonyaml.LoadSpringProperties(strings.NewReader(`
# the same
server.port=8080
spring.data.redis.host=10.0.0.7
spring.data.redis.port: 6380
spring.data.redis.username   shop
spring.data.redis.password=s3\u0063ret
spring.data.redis.database=3
spring.data.redis.client-name=check\
    out
spring.data.redis.connectTimeout=1500
spring.data.redis.timeout=PT2S
`), redissonyaml.Options{})
	require.NoError(t, err)
	require.Equal(t, redis, config.Redis)
	require.Equal(t, 2*time.Second, config.Locks.CommandTimeout)

	config = loadSpring(t, "spring.redis: {host: a, ssl: true}") // of Spring Boot 2
	require.Equal(t, []string{"a:6379"}, config.Redis.InitAddress)
	require.NotNil(t, config.Redis.TLSConfig)
}

func TestSpringURLIsFollowed(t *testing.T) {
	config := loadSpring(t, `
spring.data.redis:
  url: "rediss://shop:p%40s+s@10.0.0.7:6380/3"
  host: localhost
  password: ignored
  database: 3
`)
	require.Equal(t, []string{"10.0.0.7:6380"}, config.Redis.InitAddress)
	require.Equal(t, "shop", config.Redis.Username)
	require.Equal(t, "p@s+s", config.Redis.Password)
	require.Equal(t, 3, config.Redis.SelectDB)
	require.NotNil(t, config.Redis.TLSConfig)
	noted(t, config, 4)
	noted(t, config, 5)

	config = loadSpring(t, `spring.data.redis.url: "redis://secret@a:1"`)
	require.Empty(t, config.Redis.Username)
	require.Equal(t, "secret", config.Redis.Password)
}

func TestSpringSentinelAndClusterAreFollowedWithRedissonsDefaults(t *testing.T) {
	config := loadSpring(t, `
spring:
  data:
    redis:
      username: shop
      password: secret
      ssl.enabled: on
      sentinel:
        master: mymaster
        nodes: "s1:26379, s2:26379"
        username: watch
        password: other
`)
	require.Equal(t, []string{"s1:26379", "s2:26379"}, config.Redis.InitAddress)
	require.Equal(t, "mymaster", config.Redis.Sentinel.MasterSet)
	require.Equal(t, "watch", config.Redis.Sentinel.Username)
	require.Equal(t, "other", config.Redis.Sentinel.Password)
	require.Equal(t, "shop", config.Redis.Username)
	require.NotNil(t, config.Redis.TLSConfig)
	require.Same(t, config.Redis.TLSConfig, config.Redis.Sentinel.TLSConfig)
	require.Equal(t, rlock.SyncConnected, config.Locks.SyncReplicas)

	config = loadSpring(t, `
spring.data.redis.username: not sent without a password
spring.data.redis.cluster:
  nodes: ["n1:7001", "[::1]:7002"]
  max-redirects: 3
`)
	require.Equal(t, []string{"n1:7001", "[::1]:7002"}, config.Redis.InitAddress)
	require.Equal(t, 5*time.Second, config.Redis.ClusterOption.ShardsRefreshInterval)
	require.Equal(t, rlock.SyncConnected, config.Locks.SyncReplicas)
	require.Empty(t, config.Redis.Username)

	config, err := redissonyaml.LoadSpringProperties(strings.NewReader(
		"spring.data.redis.cluster.nodes[0]=n1:7001\nspring.data.redis.cluster.nodes[1]=n2:7002\n"),
		redissonyaml.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"n1:7001", "n2:7002"}, config.Redis.InitAddress)
}

func TestSpringEnvironmentOutranksTheFile(t *testing.T) {
	t.Setenv("SPRING_DATA_REDIS_HOST", "10.0.0.8")
	t.Setenv("SPRING_DATA_REDIS_CLIENTNAME", "checkout")
	config := loadSpring(t, "spring.data.redis: {host: localhost, client_name: x}")
	require.Equal(t, []string{"10.0.0.8:6379"}, config.Redis.InitAddress)
	require.Equal(t, "checkout", config.Redis.ClientName)
	require.Equal(t, []string{"10.0.0.8:6379"}, loadSpring(t, "a: b").Redis.InitAddress)

	t.Setenv("SPRING_DATA_REDIS_PORT", "none")
	wrong := rejectSpring(t, "spring.data.redis: {host: localhost}")
	require.Equal(t, "SPRING_DATA_REDIS_PORT", wrong.Lines[0].Key)

	t.Setenv("SPRING_DATA_REDIS_PORT", "6379")
	t.Setenv("SPRING_DATA_REDIS_CLUSTER_NODES", "n1:7001,n2:7002")
	config = loadSpring(t, "spring.data.redis.cluster.nodes: ['a:1', 'b:2']")
	require.Equal(t, []string{"n1:7001", "n2:7002"}, config.Redis.InitAddress)
	t.Setenv("SPRING_DATA_REDIS_CLUSTER_NODES_0_", "n1:7001")
	require.ErrorContains(t, rejectSpring(t, "a: b"), "SPRING_DATA_REDIS_CLUSTER_NODES to all")
}

func TestSpringPlaceholdersAreReplaced(t *testing.T) {
	t.Setenv("HOLDFAST_HOST", "10.0.0.7")
	config := loadSpring(t, `
redis: {pass-word: "a:${HOLDFAST_UNSET:b}"}
spring.data.redis:
  host: "${HOLDFAST_HOST:localhost}"
  port: "${HOLDFAST_UNSET:${HOLDFAST_UNSET2:6380}}"
  password: "<${redis.pass-word}>${"
  client-name: "${holdfast.host}"
`)
	require.Equal(t, []string{"10.0.0.7:6380"}, config.Redis.InitAddress)
	require.Equal(t, "<a:b>${", config.Redis.Password)
	require.Equal(t, "10.0.0.7", config.Redis.ClientName)

	wrong := rejectSpring(t, "spring.data.redis.host: '${HOLDFAST_UNSET}'")
	require.Len(t, wrong.Lines, 1)
	require.ErrorContains(t, wrong, "line 1: spring.data.redis.host: ${HOLDFAST_UNSET} is not set")
	wrong = rejectSpring(t, "a: '${b}${b}'\nb: '${a}${a}'\nspring.data.redis.host: '${a}'")
	require.ErrorContains(t, wrong, "is not set")
}

func TestSpringLaterDocumentOutranksAnEarlierOne(t *testing.T) {
	base := "spring.data.redis: {cluster: {nodes: ['a:1', 'b:2']}, password: secret}\n"
	prod := "spring.data.redis: {cluster: {nodes: 'c:3'}}\n"
	config, err := redissonyaml.LoadSpringYAML(io.MultiReader(strings.NewReader(base),
		strings.NewReader("\n---\n"), strings.NewReader(prod)), redissonyaml.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"c:3"}, config.Redis.InitAddress)
	require.Equal(t, "secret", config.Redis.Password)
	require.Empty(t, loadSpring(t, base+"---\nspring.data.redis.password: ~").Redis.Password)

	config, err = redissonyaml.LoadSpringProperties(strings.NewReader(
		"spring.data.redis.host=a\n#---\nspring.data.redis.host=b\n"), redissonyaml.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"b:6379"}, config.Redis.InitAddress)
}

func TestSpringDocumentOfAProfileIsFollowedOnlyIfTheProgramSaysSo(t *testing.T) {
	file := `
spring.data.redis.host: a
---
spring.config.activate.on-profile: [prod]
spring.data.redis.host: b
`
	wrong := rejectSpring(t, file)
	require.ErrorContains(t, wrong, "line 5: spring.data.redis.host: belongs to a document for")
	config := loadSpring(t, file, "spring.config.activate.on-profile")
	require.Equal(t, []string{"b:6379"}, config.Redis.InitAddress)

	config = loadSpring(t, "spring.data.redis.host: a\n---\nspring.profiles: dev\nserver.port: 1")
	require.Equal(t, []string{"a:6379"}, config.Redis.InitAddress, "the profile changes no server")
}

func TestSpringHandledKeysAreLeftToTheCaller(t *testing.T) {
	config := loadSpring(t, `
spring.profiles.active: prod
spring.data.redis:
  host: a
  ssl: {bundle: redis}
  frobnicate: 7
`, "spring.profiles.active", "spring.data.redis.ssl.bundle", "spring.data.redis.frobnicate")
	require.NotNil(t, config.Redis.TLSConfig, "a bundle turns TLS on")
	noted(t, config, 2)
	noted(t, config, 5)
	noted(t, config, 6)
}

func TestSpringLinesThatCannotBeFollowedAreErrors(t *testing.T) {
	// Each file is wrong in the line with the comment, which begins with what the error says.
	for name, file := range map[string]string{
		"unknown key": `
spring.data.redis:
  host: a
  hots: b # spring.data.redis.hots: unknown key`,
		"bundle": `
spring.data.redis:
  host: a
  ssl: {bundle: redis} # spring.data.redis.ssl.bundle: redissonyaml does not read SSL bundles`,
		"import": `
spring.config.import: "configserver:" # spring.config.import: leads to other files
spring.data.redis.host: a`,
		"profile": `
spring.profiles.active: prod # spring.profiles.active: leads to other files
spring.data.redis.host: a`,
		"Redisson's own file": `
spring.redis.redisson.file: "classpath:redisson.yaml" # spring.redis.redisson.file: has the settings
spring.data.redis.host: a`,
		"both releases": `
spring.redis.host: a
spring.data.redis.host: a # spring.data.redis.host: the file also has keys of spring.redis`,
		"fixed replicas": `
spring.data.redis.host: a
spring.data.redis.masterreplica.nodes: a:1 # spring.data.redis.masterreplica.nodes: redisson`,
		"a key twice": `
spring.data.redis.client-name: a
spring.data.redis.clientName: b # spring.data.redis.clientName: the document has the same key`,
		"a merged mapping": `
x: &x {data: {redis: {host: a}}}
spring:
  <<: *x # <<: redissonyaml does not support merged mappings`,
		"no number": `
spring.data.redis:
  host: a
  database: x # spring.data.redis.database: must be a whole number`,
		"no time": `
spring.data.redis:
  host: a
  timeout: 2 weeks # spring.data.redis.timeout: must be a duration`,
		"no flag": `
spring.data.redis:
  host: a
  ssl.enabled: maybe # spring.data.redis.ssl.enabled: must be true or false`,
		"an address as host": `
spring.data.redis:
  host: redis://a # spring.data.redis.host: must be a host`,
		"a node without a port": `
spring.data.redis:
  cluster.nodes: n1 # spring.data.redis.cluster.nodes: each element must be host:port`,
		"a database of a cluster": `
spring.data.redis:
  cluster.nodes: n1:1
  database: 2 # spring.data.redis.database: a cluster has only the database 0`,
		"no URL": `
spring.data.redis.url: a:6379 # spring.data.redis.url: must have the form`,
		"another database in the URL": `
spring.data.redis.url: redis://a:1/2 # spring.data.redis.url: before version 3.5, Spring Boot`,
		"a user beside the URL": `
spring.data.redis.url: redis://a:1
spring.data.redis.username: b # spring.data.redis.username: Spring Boot 3 and 4 disagree`,
		"TLS or not": `
spring.data.redis.url: rediss://a:1 # spring.data.redis.url: uses rediss, but
spring.data.redis.ssl.enabled: false`,
	} {
		t.Run(name, func(t *testing.T) {
			wrong := rejectSpring(t, file)
			line := wrong.Lines[0]
			for i, text := range strings.Split(file, "\n") {
				if _, says, found := strings.Cut(text, " # "); found {
					require.Equal(t, i+1, line.Number, "%v", wrong)
					_, said, _ := strings.Cut(line.String(), ": ")
					require.True(t, strings.HasPrefix(said, says), said)
				}
			}
		})
	}
}

func TestSpringFileWithoutServersIsAnError(t *testing.T) {
	for file, says := range map[string]string{
		"":                         "the file names no server",
		"server.port: 1":           "the file names no server",
		"spring.data.redis.host=a": "pass a properties file to LoadSpringProperties",
		"spring.data.redis.sentinel: {nodes: 'a:1'}":                            "the name of the master",
		"spring.data.redis.sentinel: {master: m}":                               "add the addresses",
		"spring.data.redis: {url: 'redis://a:1', cluster: {nodes: 'a:1'}}":      "several kinds",
		"spring.data.redis: {sentinel: {master: m}, cluster: {nodes: ['a:1']}}": "several kinds",
	} {
		_, err := redissonyaml.LoadSpringYAML(strings.NewReader(file), redissonyaml.Options{})
		require.ErrorContains(t, err, says, "%q", file)
	}
}

func TestNoErrorAndNoNoteOfSpringContainsASecret(t *testing.T) {
	for name, file := range map[string]string{
		"password as URL":      "spring.data.redis.url: hunter2",
		"broken URL":           "spring.data.redis.url: 'redis://u:hunter2%zz@a:1'",
		"no port":              "spring.data.redis.url: 'redis://u:hunter2@a'",
		"password in the path": "spring.data.redis.url: 'redis://a:1/hunter2'",
		"address as host":      "spring.data.redis.host: 'u:hunter2@a'",
		"password as a node":   "spring.data.redis.cluster.nodes: 'hunter2'",
		"part of a variable":   "spring.data.redis: {host: a, password: 'x${hunter2}'}",
		"a key":                "spring.data.redis:\n  host: a\n  'password=hunter2': x",
		"beside a URL":         "spring.data.redis: {url: 'redis://a:1', password: hunter2}",
		"alias":                "spring.data.redis.password: *hunter2",
		"quote":                "spring.data.redis:\n  password: 'hunter2'hunter2\n",
	} {
		t.Run(name, func(t *testing.T) {
			config, err := redissonyaml.LoadSpringYAML(strings.NewReader(file), redissonyaml.Options{})
			if err != nil {
				require.NotContains(t, err.Error(), "hunter2")
				return
			}
			for _, note := range config.Notes {
				require.NotContains(t, note.String(), "hunter2")
			}
		})
	}
	_, err := redissonyaml.LoadSpringProperties(
		strings.NewReader("spring.data.redis.password=hunter2\\uzzzz"), redissonyaml.Options{})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}

// FuzzLoadSpring looks for files that are followed without a server, or refused without a line.
func FuzzLoadSpring(f *testing.F) {
	for _, file := range []string{
		"spring: {data: {redis: {host: a, port: '${P:1}', password: &p x}}}\na: *p",
		"spring.data.redis.sentinel: {master: m, nodes: ['a:1']}\n---\nspring.profiles: [a]",
		"spring.data.redis.url=redis://u:p@a:1/2\n#---\nspring.data.redis.database 2\n",
		"x: &x {<<: {a: b}}\nspring: *x\nb: '${a}${a:${b}}'",
	} {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file string) {
		for _, load := range []func(io.Reader, redissonyaml.Options) (*redissonyaml.Config, error){
			redissonyaml.LoadSpringYAML, redissonyaml.LoadSpringProperties,
		} {
			config, err := load(strings.NewReader(file), redissonyaml.Options{})
			var wrong *redissonyaml.Error
			if err == nil {
				require.NotEmpty(t, config.Redis.InitAddress)
			} else if errors.As(err, &wrong) {
				for _, line := range wrong.Lines {
					require.NotEmpty(t, line.Text)
				}
			}
		}
	})
}
