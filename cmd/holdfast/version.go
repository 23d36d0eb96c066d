package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// release is the version of a release. The linker sets it, see .goreleaser.yaml.
var release string

// versionCommand is "holdfast version".
type versionCommand struct{}

// Run prints the version of the program: that of its release or module, or the commit it was built
// from.
func (versionCommand) Run() error {
	_, err := fmt.Fprintf(os.Stdout, "holdfast %s %s %s/%s\n", version(), runtime.Version(),
		runtime.GOOS, runtime.GOARCH)
	return err
}

// versionFlag is "holdfast --version".
type versionFlag bool

// BeforeReset prints the version and exits, before a missing command is noticed.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	err := versionCommand{}.Run()
	if err == nil {
		app.Exit(0)
	}
	return err
}

// version returns the version, as far as it is known.
func version() string {
	if release != "" {
		return release
	}
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
