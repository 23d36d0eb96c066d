package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// versionCommand is "holdfast version".
type versionCommand struct{}

// Run prints the version of the program: that of its module, or the commit it was built from.
func (versionCommand) Run() error {
	_, err := fmt.Fprintf(os.Stdout, "holdfast %s %s %s/%s\n", version(), runtime.Version(),
		runtime.GOOS, runtime.GOARCH)
	return err
}

// version returns the version, as far as it is known.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
			version = s.Value[:min(12, len(s.Value))]
		}
	}
	return version
}
