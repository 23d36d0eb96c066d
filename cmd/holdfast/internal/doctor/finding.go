package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"holdfast/internal/printable"
	"holdfast/internal/rediserr"
)

// State says how bad a finding is. A larger one is worse.
type State int

// The states.
const (
	OK      State = iota
	Unknown       // it could not be asked; reported as a warning
	Warning
	Error
)

// String returns the state as it is reported: "ok", "warning" or "error".
func (s State) String() string { return [...]string{"ok", "warning", "warning", "error"}[s] }

// MarshalJSON returns the state as a string.
func (s State) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// Finding is what a check saw.
type Finding struct {
	State  State  `json:"state"`
	Check  string `json:"check"`
	Node   string `json:"node,omitempty"` // of a cluster, if it is not the same on all
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"` // what to do

	denied bool   // this user may not ask
	grant  string // the right that is missing then, if the server names it
}

// said formats what was found. What comes from the server is escaped and shortened.
func said(format string, args []any) string {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = printable.Short(arg)
		case error:
			args[i] = printable.Short(arg.Error())
		}
	}
	return fmt.Sprintf(format, args...)
}

// ok returns that all is well.
func ok(format string, args ...any) Finding {
	return Finding{State: OK, Text: said(format, args)}
}

// unknown returns that the server did not say, and what to look at by hand.
func unknown(err error, byHand string) Finding {
	f := Finding{State: Unknown, Text: fmt.Sprintf("this check failed (%v)", reason(err)),
		Advice: "check by hand " + byHand, denied: codeOf(err) == "NOPERM"}
	if refused := refusedCommand.FindStringSubmatch(reason(err)); refused != nil {
		f.grant = "+" + refused[1]
		f.Advice += ", or grant " + f.grant + " to this user"
	}
	return f
}

// refusedCommand finds the command that a user may not call, as Redis 7 says it. Redis 6 does not
// name subcommands, and all of CONFIG is more than is needed.
var refusedCommand = regexp.MustCompile(`^NOPERM .* '([a-z|]+)' command$`)

// warning returns that locks may suffer, and what to do.
func warning(advice, format string, args ...any) Finding {
	return Finding{State: Warning, Text: said(format, args), Advice: advice}
}

// failure returns that locks are not safe, or do not work, and what to do.
func failure(advice, format string, args ...any) Finding {
	return Finding{State: Error, Text: said(format, args), Advice: advice}
}

// named returns the finding as that of another check than the one that it was made by.
func (f Finding) named(check string) Finding {
	f.Check = check
	return f
}

// one returns the findings of a check that has one.
func one(f Finding) []Finding { return []Finding{f} }

// explained returns what is known of an error of a command.
func explained(err error) *rediserr.Error {
	e := new(rediserr.Error)
	errors.As(rediserr.Classify(err), &e)
	return e
}

// reason returns the text of an error without the advice, which is for programmers, and without the
// place in a script.
func reason(err error) string {
	text, _, _ := strings.Cut(explained(err).Message, " script: ")
	return text
}

// codeOf returns the code of an error reply, or "".
func codeOf(err error) string { return explained(err).Code }
