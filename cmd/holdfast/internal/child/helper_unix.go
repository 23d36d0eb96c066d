//go:build unix

package child

import (
	"fmt"
	"os"

	"holdfast/cmd/holdfast/internal/status"
)

// The first arguments of the processes that run starts this program as.
const (
	startCommand = "start"
	guardCommand = "guard"
)

// init makes this process the guard, or the command, if it was started for that. main would come
// too late: the other packages of the program take longer to initialize than all that these two
// processes do. Go initializes packages in the order of their paths, as soon as those that they
// import are, so this package comes before all that need the network, regular expressions or rlock.
func init() {
	if len(os.Args) < 2 {
		return
	}
	var err error
	switch args := os.Args[2:]; os.Args[1] {
	case guardCommand:
		err = carryOut(os.Stdin, os.Stdout, args...)
	case startCommand:
		var code int
		code, err = become(args)
		err = status.New(code, fmt.Errorf("cannot start the command: %w", err))
	default:
		return
	}
	os.Exit(status.Report(os.Stderr, err))
}
