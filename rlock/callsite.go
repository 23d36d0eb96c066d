package rlock

import (
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
)

// callSite is where a caller acquired a lock: its stack, innermost frame first.
type callSite []uintptr

// deepest is the number of frames that a call site has at most.
const deepest = 32

// here returns the call site of the caller; nil unless an option asks for it.
func (c *Client) here() callSite {
	if !c.options.Debug && c.options.MaxHold == 0 {
		return nil
	}
	frames := make([]uintptr, deepest)
	return frames[:runtime.Callers(2, frames)]
}

// goroutine returns the number of this goroutine, for warnings only; 0 without Options.Debug.
func (c *Client) goroutine() uint64 {
	if !c.options.Debug {
		return 0
	}
	var stack [64]byte
	number, _ := strings.CutPrefix(string(stack[:runtime.Stack(stack[:], false)]), "goroutine ")
	number, _, _ = strings.Cut(number, " ")
	id, _ := strconv.ParseUint(number, 10, 64)
	return id
}

// module is the prefix of the functions of this module.
var module = strings.TrimSuffix(reflect.TypeFor[Client]().PkgPath(), "rlock")

// ours reports whether a function is of a package that acquires locks for callers.
func ours(function string) bool {
	name, ok := strings.CutPrefix(function, module)
	return ok && (strings.HasPrefix(name, "rlock.") || strings.HasPrefix(name, "multilock.") ||
		strings.HasPrefix(name, "redlock."))
}

// frames calls f with each frame of the caller's code, until it returns false.
func (cs callSite) frames(f func(runtime.Frame) bool) {
	if len(cs) == 0 {
		return
	}
	for frames := runtime.CallersFrames(cs); ; {
		frame, more := frames.Next()
		if !ours(frame.Function) && frame.File != "" && !f(frame) || !more {
			return
		}
	}
}

// String returns the file and line of the call; "" if the call site was not recorded.
func (cs callSite) String() (at string) {
	cs.frames(func(f runtime.Frame) bool {
		at = fmt.Sprintf("%s:%d", f.File, f.Line)
		return false
	})
	return at
}

// stack returns all frames of the caller's code, one on each line.
func (cs callSite) stack() string {
	var lines strings.Builder
	cs.frames(func(f runtime.Frame) bool {
		fmt.Fprintf(&lines, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		return true
	})
	return lines.String()
}

// acquiredAt returns "acquired at " and the call site, or how to have it recorded.
func (cs callSite) acquiredAt() string {
	if at := cs.String(); at != "" {
		return "acquired at " + at
	}
	return "set Options.Debug to see where it was acquired"
}
