package redissonyaml

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// rule follows a key: it sets what the value says, notes the line, or refuses it. The value is not
// null.
type rule func(r *reader, at place, value *yaml.Node)

// ignored returns the rule of a key without a counterpart, whose value does no harm.
func ignored(why string) rule {
	return func(r *reader, at place, _ *yaml.Node) { r.note(at, why) }
}

// refused returns the rule of a key that nobody may overlook.
func refused(advice string) rule {
	return func(r *reader, at place, _ *yaml.Node) { r.fail(at, advice) }
}

// only returns the rule of a key that is ignored with some values and refused with others.
func only(advice string, harmless ...string) rule {
	return func(r *reader, at place, value *yaml.Node) {
		if value.Kind != yaml.ScalarNode || !slices.Contains(harmless, value.Value) {
			r.fail(at, advice)
		}
	}
}

// yamlsOwn are the tags of values that have none in the file.
var yamlsOwn = map[string]bool{
	"!!map": true, "!!seq": true, "!!str": true, "!!int": true, "!!bool": true, "!!float": true,
	"!!timestamp": true, "!!binary": true,
}

// bean returns the rule of a key whose value is an object of a Java class. The harmless classes are
// ignored, which are Redisson's defaults, and others refused.
func bean(advice string, harmless ...string) rule {
	return func(r *reader, at place, value *yaml.Node) {
		if yamlsOwn[value.Tag] {
			r.fail(at, "must be an object of a Java class, such as !<org.example.Class> {}")
			return
		}
		if class := strings.TrimLeft(value.Tag, "!"); !slices.Contains(harmless, class) {
			r.fail(at, strings.ToValidUTF8(class, "?")+" is Java code, which redissonyaml cannot run; "+
				advice)
		}
	}
}

// text returns a rule that hands the value over.
func text(set func(r *reader, at place, value string)) rule {
	return func(r *reader, at place, value *yaml.Node) {
		if value.Kind != yaml.ScalarNode {
			r.fail(at, "must be a text")
			return
		}
		set(r, at, value.Value)
	}
}

// texts returns a rule that hands the values of a list over one by one, or a single value.
func texts(set func(r *reader, at place, value string)) rule {
	one := text(set)
	return func(r *reader, at place, value *yaml.Node) {
		if value.Kind != yaml.SequenceNode {
			one(r, at, value)
			return
		}
		for _, element := range value.Content {
			if element.Kind == yaml.AliasNode {
				element = element.Alias
			}
			here := place{line: r.line(element), key: at.key}
			if !r.unset(here, element) {
				one(r, here, element)
			}
		}
	}
}

// flag returns a rule that hands true or false over.
func flag(set func(r *reader, at place, value bool)) rule {
	return func(r *reader, at place, value *yaml.Node) {
		var is bool
		if value.Kind != yaml.ScalarNode || value.Decode(&is) != nil {
			r.fail(at, "must be true or false")
			return
		}
		set(r, at, is)
	}
}

// number returns a rule that hands over a whole number that is not smaller than least.
func number(least int, set func(r *reader, value int)) rule {
	return func(r *reader, at place, value *yaml.Node) {
		var n int
		if value.Kind != yaml.ScalarNode || value.Decode(&n) != nil || n < least ||
			n > math.MaxInt32 {
			r.fail(at, fmt.Sprintf("must be a whole number, at least %d", least))
			return
		}
		set(r, n)
	}
}

// milliseconds returns a rule that hands over a time that is not shorter than least.
func milliseconds(least time.Duration, set func(r *reader, value time.Duration)) rule {
	return func(r *reader, at place, value *yaml.Node) {
		var n int64
		if value.Kind != yaml.ScalarNode || value.Decode(&n) != nil ||
			n < least.Milliseconds() || n > math.MaxInt64/int64(time.Millisecond) {
			r.fail(at, fmt.Sprintf("must be a number of milliseconds, at least %d",
				least.Milliseconds()))
			return
		}
		set(r, time.Duration(n)*time.Millisecond)
	}
}

// oneOf returns a rule that hands over what a name stands for.
func oneOf[T any](names map[string]T, set func(r *reader, value T)) rule {
	return text(func(r *reader, at place, value string) {
		meaning, ok := names[value]
		if !ok {
			r.fail(at, "must be one of "+strings.Join(slices.Sorted(maps.Keys(names)), ", "))
			return
		}
		set(r, meaning)
	})
}
