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
