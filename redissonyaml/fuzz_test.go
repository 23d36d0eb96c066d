package redissonyaml_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/redissonyaml"
)

// lineBreak matches the ends of lines in YAML.
var lineBreak = regexp.MustCompile(`\r\n|[\r\n\x{85}\x{2028}\x{2029}]`)

// FuzzLoad looks for files that are followed without a server, or refused without a line.
func FuzzLoad(f *testing.F) {
	for _, file := range []string{
		"singleServerConfig: {address: 'redis://u:p@${HOST:-a}:1', password: &p x}\npassword: *p",
		"sentinelServersConfig:\n  masterName: m\n  sentinelAddresses: [rediss://a:1]",
		"clusterServersConfig:\n  nodeAddresses:\n  - redis://a:1\nlockWatchdogTimeout: 1_000",
		"nameMapper: !<com.acme.Mapper> {prefix: a}\n<<: {a: b}\n? [a]\n: b",
		"sslProtocols: [TLSv1.2]\nsslVerificationMode: CA_ONLY\n---\n",
	} {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file string) {
		config, err := redissonyaml.Load(strings.NewReader(file), redissonyaml.Options{})
		if err == nil {
			require.NotEmpty(t, config.Redis.InitAddress)
			return
		}
		var wrong *redissonyaml.Error
		if errors.As(err, &wrong) {
			lines := 1 + len(lineBreak.FindAllString(file, -1))
			for _, line := range wrong.Lines {
				require.NotEmpty(t, line.Text)
				require.LessOrEqual(t, line.Number, lines, "%v", line)
			}
		}
	})
}
