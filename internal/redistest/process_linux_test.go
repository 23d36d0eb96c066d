package redistest

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestServerDiesWithATestBinaryThatIsKilled(t *testing.T) {
	path, err := os.Executable()
	require.NoError(t, err)
	owner := exec.Command(path)
	owner.Env = append(os.Environ(), roleVariable+"=owner")
	output, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	addr := strings.TrimSpace(line)
	require.NoError(t, dial(addr))

	require.NoError(t, owner.Process.Kill())
	require.Error(t, owner.Wait())
	require.Eventually(t, func() bool {
		return dial(addr) != nil
	}, 5*time.Second, 5*time.Millisecond)
}

func dial(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}
