package lua

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// token reads the token of a fenced lock. class is that of the error for a counter that something
// else wrote to.
func (rp *reply) token(lock string, class Class) int64 {
	text := rp.text()
	token, err := strconv.ParseInt(text, 10, 64)
	if err != nil && rp.err == nil {
		rp.err = &Error{Class: class,
			Message: fmt.Sprintf("the token %q of %q is not a number", text, lock),
			Advice:  "something else writes to the key " + tokenKey(lock)}
	}
	return token
}

// miscounted adds advice to a refusal that concerns the counter of a fenced lock.
func miscounted(lock string, err error) error {
	var e *Error
	switch {
	case !errors.As(err, &e):
	case e.Code == "WRONGTYPE":
		e.Advice = "the key of this name is not a lock, or " + tokenKey(lock) +
			" is not a number: choose another name"
	case strings.Contains(e.Message, "not an integer"),
		strings.Contains(e.Message, "would overflow"):
		e.Advice = "the key " + tokenKey(lock) +
			" cannot count on, so something else writes to it: " +
			"set it to a number that is larger than any token in use"
	}
	return err
}
