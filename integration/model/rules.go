//go:build model

package model

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// rule is a rule of a model's argument, as its comment in the model tells:
//
//	\* RULE latestTicket BREAKS OneHolder
//	\*   A message for an earlier registration is trusted.
//	\*   STEPS Ask Refuse Release Deliver
//	\*   WITH Waiters = {"a", "b"}; MaxTime = 3
type rule struct {
	model, name string
	breaks      string   // the property that does not hold without the rule
	story       string   // how
	steps       []string // actions of the counterexample in this order, among others
	with        []string // constants other than those of the configuration, as Name = value
}

var ruleLine = regexp.MustCompile(`^RULE (\w+) BREAKS (\w+)$`)

// rules returns the rules of a model.
func rules(model string) (all []rule, err error) {
	source, err := os.ReadFile(filepath.Join(folder, model+".tla"))
	if err != nil {
		return nil, err
	}
	var current *rule
	for line := range strings.Lines(string(source)) {
		text, comment := strings.CutPrefix(strings.TrimSpace(line), `\*`)
		text = strings.TrimSpace(text)
		switch found := ruleLine.FindStringSubmatch(text); {
		case found != nil:
			all = append(all, rule{model: model, name: found[1], breaks: found[2]})
			current = &all[len(all)-1]
		case !comment || text == "" || current == nil:
			current = nil
		case strings.HasPrefix(text, "STEPS "):
			current.steps = strings.Fields(text)[1:]
		case strings.HasPrefix(text, "WITH "):
			for constant := range strings.SplitSeq(strings.TrimPrefix(text, "WITH "), ";") {
				current.with = append(current.with, strings.TrimSpace(constant))
			}
		default:
			current.story = strings.TrimSpace(current.story + " " + text)
		}
	}
	return all, err
}

// guarded returns the names in Rule("name") of a model.
func guarded(model string) (names []string, err error) {
	source, err := os.ReadFile(filepath.Join(folder, model+".tla"))
	for _, found := range regexp.MustCompile(`Rule\("(\w+)"\)`).FindAllSubmatch(source, -1) {
		names = append(names, string(found[1]))
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// configurations returns the paths of a model's configurations, M.cfg first.
func configurations(model string) []string {
	more, _ := filepath.Glob(filepath.Join(folder, model+".*.cfg"))
	return append([]string{filepath.Join(folder, model+".cfg")}, more...)
}

// sections are the words that begin a section of a configuration.
var sections = regexp.MustCompile(
	`^(CONSTANTS?|INVARIANTS?|PROPERTY|PROPERTIES|SPECIFICATION|CHECK_DEADLOCK|SYMMETRY|` +
		`CONSTRAINTS?|ACTION_CONSTRAINTS?|VIEW|ALIAS|INIT|NEXT)\b`)

// properties returns the properties that a configuration checks.
func properties(cfg string) (names []string) {
	inside := false
	for line := range strings.Lines(cfg) {
		if words := strings.Fields(uncommented(line)); sections.MatchString(line) {
			inside = checks(words[0])
			if inside {
				names = append(names, words[1:]...)
			}
		} else if inside {
			names = append(names, words...)
		}
	}
	return names
}

func checks(section string) bool {
	return strings.HasPrefix(section, "INVARIANT") || strings.HasPrefix(section, "PROPERT")
}

func uncommented(line string) string {
	line, _, _ = strings.Cut(line, `\*`)
	return line
}

// without returns a configuration in which a rule is left out, and which checks only the property
// that this breaks.
func (r rule) without() (cfg string, err error) {
	return r.configuration(fmt.Sprintf("{%q}", r.name))
}

// obeyed returns the same configuration, in which no rule is left out.
func (r rule) obeyed() (cfg string, err error) { return r.configuration("{}") }

func (r rule) configuration(without string) (cfg string, err error) {
	for _, path := range configurations(r.model) {
		source, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if slices.Contains(properties(string(source)), r.breaks) {
			return r.changed(string(source), without)
		}
	}
	return "", fmt.Errorf("no configuration of %s checks %s", r.model, r.breaks)
}

// changed returns a configuration with the rule's constants and without some rules.
func (r rule) changed(source, without string) (string, error) {
	var cfg strings.Builder
	section, kind := "", ""
	replaced := map[string]bool{}
	constants := append([]string{"Without = " + without}, r.with...)
	for line := range strings.Lines(source) {
		line = uncommented(line)
		if found := sections.FindString(line); found != "" {
			section = found
			if checks(section) {
				line = strings.TrimPrefix(line, section)
			}
		}
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case checks(section):
			if slices.Contains(words, r.breaks) {
				kind = section
			}
			continue
		}
		for _, constant := range constants {
			name, _, _ := strings.Cut(constant, " ")
			if i := slices.Index(words, name); i >= 0 && i < len(words)-1 &&
				(words[i+1] == "=" || words[i+1] == "<-") {
				line = strings.Join(words[:i], " ") + " " + constant + "\n"
				replaced[constant] = true
			}
		}
		cfg.WriteString(strings.TrimRight(line, "\n") + "\n")
	}
	for _, constant := range constants {
		if !replaced[constant] {
			return "", fmt.Errorf("%s: the configuration has no constant for %q", r.name, constant)
		}
	}
	fmt.Fprintf(&cfg, "%s\n  %s\n", kind, r.breaks)
	return cfg.String(), nil
}
