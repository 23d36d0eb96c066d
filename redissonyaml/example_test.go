package redissonyaml_test

import (
	"errors"
	"fmt"
	"strings"

	"holdfast/redissonyaml"
)

// A Go service reads the file of the Java service beside it, and logs what it does not follow.
func ExampleLoad() {
	config, err := redissonyaml.Load(strings.NewReader(`
singleServerConfig:
  address: "redis://${REDIS_HOST:-127.0.0.1}:6379"
  connectionPoolSize: 64
lockWatchdogTimeout: 15000
checkLockSyncedSlaves: false
`), redissonyaml.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(config.Redis.InitAddress, config.Locks.WatchdogLease)
	for _, note := range config.Notes {
		fmt.Println(note.Number, note.Key)
	}

	// Output:
	// [127.0.0.1:6379] 15s
	// 4 singleServerConfig.connectionPoolSize
	// 6 checkLockSyncedSlaves
}

// What would silently change which locks are taken is refused, line by line.
func ExampleLoad_refused() {
	_, err := redissonyaml.Load(strings.NewReader(`
singleServerConfig:
  address: "redis://127.0.0.1:6379"
  nameMapper: !<com.acme.TenantMapper> {}
  host: "redis://10.0.0.7:6379"
`), redissonyaml.Options{})
	var wrong *redissonyaml.Error
	if errors.As(err, &wrong) {
		for _, line := range wrong.Lines {
			fmt.Println(line.Number, line.Key)
		}
		fmt.Println(wrong.Lines[1].Text)
	}

	// Output:
	// 4 singleServerConfig.nameMapper
	// 5 singleServerConfig.host
	// unknown key; remove it, or add it to Options.Handled if the program does not need it
}

// A Go service reads application.yml of the Java service beside it.
func ExampleLoadSpringYAML() {
	config, err := redissonyaml.LoadSpringYAML(strings.NewReader(`
server.port: 8080
spring:
  data:
    redis:
      host: ${REDIS_HOST:127.0.0.1}
      database: 2
      timeout: 2s
      lettuce.pool.enabled: true
`), redissonyaml.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(config.Redis.InitAddress, config.Redis.SelectDB, config.Locks.CommandTimeout)
	for _, note := range config.Notes {
		fmt.Println(note.Number, note.Key)
	}

	// Output:
	// [127.0.0.1:6379] 2 2s
	// 9 spring.data.redis.lettuce.pool.enabled
	// 0 checkLockSyncedSlaves
}

func ExampleLoadSpringProperties() {
	config, err := redissonyaml.LoadSpringProperties(strings.NewReader(`
spring.data.redis.cluster.nodes=10.0.0.1:7001,10.0.0.2:7001
spring.data.redis.ssl.enabled=true
`), redissonyaml.Options{})
	fmt.Println(config.Redis.InitAddress, config.Redis.TLSConfig != nil, err)

	// Output:
	// [10.0.0.1:7001 10.0.0.2:7001] true <nil>
}
