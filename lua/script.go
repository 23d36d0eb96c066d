package lua

import (
	"embed"
	"strconv"
	"time"

	"holdfast/internal/eval"
	"holdfast/internal/wire"
)

//go:embed *.lua common/*.lua
var sources embed.FS

// scripts holds all scripts by file.
var scripts = eval.Load(sources)

// Script returns the script in a file, such as "survey.lua", for packages that send the script
// themselves. If the file does not exist, Script returns nil.
func Script(file string) *eval.Script { return scripts[file] }

// milliseconds formats a lease. Fractions are cut off: no lease in Redis is longer than asked for.
func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// publish has the argument of a script for each kind of channels.
var publish = [...]string{wire.Classic: "PUBLISH", wire.Sharded: "SPUBLISH", wire.Both: "BOTH"}

var flag = map[bool]string{false: "0", true: "1"}
