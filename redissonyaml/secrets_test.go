package redissonyaml_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/redissonyaml"
)

// A file that is wrong near a password: hunter2, or what begins with it.
//
//nolint:lll // one file a line
func TestNoErrorAndNoNoteContainsASecret(t *testing.T) {
	t.Setenv("HOLDFAST_SECRET", "hunter2${HUNTER2}hunter2")
	for name, file := range map[string]string{
		"address without scheme":        `singleServerConfig: {address: "user:hunter2@host:6379"}`,
		"password in the scheme":        `singleServerConfig: {address: "user:hunter2://x@host:6379"}`,
		"password in place of the port": `singleServerConfig: {address: "redis://user:hunter2"}`,
		"address without host":          `singleServerConfig: {address: "redis://:hunter2"}`,
		"password with @":               `singleServerConfig: {address: "redis://:hunter2@hunter2 @host"}`,
		"password in the query":         `singleServerConfig: {address: "redis://host:6379?password=hunter2"}`,
		"wrong encoding":                `singleServerConfig: {address: "redis://:hunter2%zz@host:6379"}`,
		"address of a Sentinel": "sentinelServersConfig:\n  masterName: m\n  sentinelAddresses:\n" +
			"  - \"redis://:hunter2\"",
		"address of a cluster": "clusterServersConfig: {nodeAddresses: ['hunter2@a:1']}",
		"alias":                "singleServerConfig:\n  password: *hunter2\n",
		"anchor":               "singleServerConfig:\n  password: &hunter2\n  password: *hunter3\n",
		"tag":                  "singleServerConfig:\n  password: !hunter2 [a]\n",
		"without a space":      "singleServerConfig:\n  password:hunter2\n  database: 1\n",
		"address as a key":     "clusterServersConfig:\n  \"redis://:hunter2@a:7000\": x\n",
		"mapping":              "singleServerConfig:\n  password: {hunter2: hunter2}\n",
		"unbalanced quote":     "singleServerConfig:\n  password: \"hunter2\n  database: 1\n",
		"quote in the middle":  "singleServerConfig:\n  password: 'hunter2'hunter2\n",
		"tab":                  "singleServerConfig:\n\tpassword: hunter2\n",
		"not UTF-8":            "singleServerConfig:\n  password: hunter2\xff\n",
		"variable in it":       "singleServerConfig: {address: 'redis://a:1', password: 'x${hunter2}'}",
		"variable's value":     "singleServerConfig: {address: 'redis://a:1', password: '${HOLDFAST_SECRET}'}\nx: y",
		"password twice":       "singleServerConfig: {address: 'redis://:hunter2@a:1', password: hunter2}",
		"password as mode":     "singleServerConfig: {address: 'redis://a:1'}\nsslVerificationMode: hunter2",
		"key store": "singleServerConfig: {address: 'redis://a:1'}\nsslKeystorePassword: hunter2\n" +
			"sslTruststorePassword: hunter2\nsslKeystore: hunter2",
		"resolver": "singleServerConfig: {address: 'redis://a:1', credentialsResolver: !<a.B> {p: hunter2}}",
	} {
		t.Run(name, func(t *testing.T) {
			config, err := redissonyaml.Load(strings.NewReader(file), redissonyaml.Options{})
			if err != nil {
				require.NotContains(t, strings.ToLower(err.Error()), "hunter2")
				return
			}
			for _, note := range config.Notes {
				require.NotContains(t, strings.ToLower(note.String()), "hunter2")
			}
		})
	}
}

// What a variable's value contains is no variable, as in Redisson.
func TestValueOfAVariableIsNotReplacedAgain(t *testing.T) {
	t.Setenv("HOLDFAST_SECRET", "a${b}c")
	config := load(t, `
singleServerConfig:
  address: "redis://a:1"
  password: "${HOLDFAST_SECRET}"
`)
	require.Equal(t, "a${b}c", config.Redis.Password)
}
