//go:build model

package model

import (
	"fmt"
	"strconv"
	"strings"
)

// Value is a value of TLA+: a string, int64, bool, [Sequence], [Set] or [Record]. Model values are
// strings.
type Value any

// Sequence is <<a, b>>.
type Sequence []Value

// Set is {a, b}.
type Set []Value

// Record is [a |-> 1]; also a function from strings, which TLC prints as (a :> 1 @@ b :> 2).
type Record map[string]Value

// State has the variables of a state.
type State = Record

// At returns what the names lead to, from record to record; nil if there is none.
func (r Record) At(path ...string) Value {
	v := Value(r)
	for _, name := range path {
		v = v.(Record)[name]
	}
	return v
}

// Text is At for a string.
func (r Record) Text(path ...string) string { return r.At(path...).(string) }

// Number is At for a number.
func (r Record) Number(path ...string) int64 { return r.At(path...).(int64) }

// Truth is At for TRUE or FALSE.
func (r Record) Truth(path ...string) bool { return r.At(path...).(bool) }

// parser reads what TLC prints. It panics on what it does not know.
type parser struct{ text string }

// parseState reads /\ a = 1 /\ b = <<>>.
func parseState(text string) (s State, err error) {
	p := &parser{text}
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("TLC's state is not understood: %v in %q", why, text)
		}
	}()
	s = State{}
	for p.skip(); p.text != ""; p.skip() {
		p.take("/\\") // TLC leaves it out if there is only one variable
		name := p.word()
		p.need("=")
		s[name] = p.value()
	}
	return s, nil
}

func (p *parser) skip() { p.text = strings.TrimLeft(p.text, " \t\r\n") }

// take reports whether the text goes on with token, and skips that.
func (p *parser) take(token string) bool {
	p.skip()
	rest, found := strings.CutPrefix(p.text, token)
	p.text = rest
	return found
}

func (p *parser) need(token string) {
	if !p.take(token) {
		panic(token + " is missing")
	}
}

// word reads an identifier or a number.
func (p *parser) word() string {
	p.skip()
	end := strings.IndexFunc(p.text, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && r != '_' && r != '-'
	})
	if end < 0 {
		end = len(p.text)
	}
	if end == 0 {
		panic("a name or number is missing")
	}
	word := p.text[:end]
	p.text = p.text[end:]
	return word
}

func (p *parser) value() Value {
	switch {
	case p.take("<<"):
		return Sequence(p.list(">>"))
	case p.take("{"):
		return Set(p.list("}"))
	case p.take("["):
		return p.record()
	case p.take("("):
		return p.function()
	case p.take(`"`):
		text, rest, _ := strings.Cut(p.text, `"`)
		p.text = rest
		return text
	}
	switch word := p.word(); word {
	case "TRUE", "FALSE":
		return word == "TRUE"
	default:
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			return n
		}
		return word
	}
}

func (p *parser) list(end string) (values []Value) {
	for !p.take(end) {
		values = append(values, p.value())
		p.take(",")
	}
	return values
}

func (p *parser) record() Record {
	r := Record{}
	for !p.take("]") {
		name := p.word()
		p.need("|->")
		r[name] = p.value()
		p.take(",")
	}
	return r
}

// function reads a function from strings, after its parenthesis.
func (p *parser) function() Record {
	r := Record{}
	for !p.take(")") {
		name := p.value().(string)
		p.need(":>")
		r[name] = p.value()
		p.take("@@")
	}
	return r
}
