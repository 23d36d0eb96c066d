// Package luashim changes scripts for tests: it puts a shim before them, Lua that stands between a
// script and the server. A test then sees how scripts do on a server that is stricter than the one
// at hand, or refuses them a command. See redistest.WithScripts.
//
// A shim works in Redis 6.2 and newer, in Valkey, and in Lua 5.4. It calls no commands of its own
// but MULTI, to be refused. Errors keep the form that they have on the server: redis.call raises
// them, redis.pcall returns them.
package luashim

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed *.lua
var shims embed.FS

// Flag is the first line of a script that uses keys which its caller does not declare. Dragonfly
// runs it nevertheless; to other servers it is a comment.
const Flag = "--!df flags=allow-undeclared-keys\n"

// What the log of a server says of the first undeclared key that an execution of a script uses. The
// rest of the line names the script, the command and the key.
const (
	Undeclared = "uses an undeclared key"          // and gets an error
	Allowed    = "uses an undeclared key, flagged" // with Flag
)

// Declared lets a script use only keys that are in KEYS. Other keys get an error that names command
// and key; a script with [Flag] may use them. Either is in the server's log, because a script may
// ignore the error. A command that the shim does not know is an error too.
func Declared(source string) string {
	name := firstLine.FindString(strings.TrimPrefix(source, Flag))
	says, flagged := Undeclared, strings.HasPrefix(source, Flag)
	if flagged {
		says = Allowed
	}
	return shim("declared.lua", fmt.Sprintf("%q, %q, %t", name, says, flagged)) + source
}

// firstLine matches the first line of a script, its purpose, which names it in the log.
var firstLine = regexp.MustCompile(`[^\n]*`)

// Refusing returns a shim that refuses a script these commands, as the server refuses those that no
// script may call. A name may have a subcommand, as in "PUBSUB|SHARDNUMSUB".
func Refusing(commands ...string) func(source string) string {
	var refused strings.Builder
	for _, command := range commands {
		fmt.Fprintf(&refused, ", %q", strings.ToUpper(command))
	}
	before := shim("refusing.lua", strings.TrimPrefix(refused.String(), ", "))
	return func(source string) string { return before + source }
}

// Bounded returns a shim that ends a script that calls more than so many commands, or one that
// returns more than so many values: see [Excessive].
func Bounded(commands, values int) func(source string) string {
	before := shim("bounded.lua", fmt.Sprintf("%d, %d", commands, values))
	return func(source string) string { return before + source }
}

// Excessive is in the error of a script that [Bounded] has ended.
const Excessive = "a script has called "

// Sharded refuses a script whose keys are in different slots, in the words of Redis Software, which
// looks like a single node and has several behind a proxy.
func Sharded(source string) string {
	text, err := shims.ReadFile("sharded.lua")
	if err != nil {
		panic(err)
	}
	return string(text) + source
}

// Named returns the shim of a name: "declared", "sharded", or "refusing" with commands, as in
// "refusing TIME PUBSUB".
func Named(name string) (func(source string) string, error) {
	words := strings.Fields(name)
	switch {
	case len(words) == 1 && words[0] == "declared":
		return Declared, nil
	case len(words) == 1 && words[0] == "sharded":
		return Sharded, nil
	case len(words) > 1 && words[0] == "refusing":
		return Refusing(words[1:]...), nil
	}
	return nil, fmt.Errorf(
		`luashim: no shim is called %q: want "declared", "sharded" or "refusing TIME …"`, name)
}

// shim returns the Lua of a file, which is a function, with its arguments: they complete its last
// line.
func shim(file, arguments string) string {
	text, err := shims.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(string(text), ")\n") + arguments + ")\n"
}
