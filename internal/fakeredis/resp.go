package fakeredis

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Status is a reply such as OK, which is not data.
type Status string

type (
	push       []any // what comes unrequested, or confirms a subscription
	dictionary []any // names and values in turn
)

// encode writes a value as RESP3. It panics for a type that no reply has, which is a mistake in the
// test.
func encode(value any) string {
	switch v := value.(type) {
	case nil:
		return "_\r\n"
	case Status:
		return "+" + string(v) + "\r\n"
	case error:
		return "-" + v.Error() + "\r\n"
	case string:
		return fmt.Sprintf("$%d\r\n%s\r\n", len(v), v)
	case int:
		return ":" + strconv.Itoa(v) + "\r\n"
	case []any:
		return sequence("*", len(v), v)
	case push:
		return sequence(">", len(v), v)
	case dictionary:
		return sequence("%", len(v)/2, v)
	default:
		panic(fmt.Sprintf("fakeredis: a reply cannot be a %T", value))
	}
}

func sequence(kind string, length int, values []any) string {
	var b strings.Builder
	b.WriteString(kind + strconv.Itoa(length) + "\r\n")
	for _, value := range values {
		b.WriteString(encode(value))
	}
	return b.String()
}

// readCommand reads one command: an array of strings with at least one.
func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readLength(r, '*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readLength(r, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		args[i] = string(text[:size])
	}
	if n == 0 {
		return nil, fmt.Errorf("fakeredis: a command without a name")
	}
	return args, nil
}

func readLength(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("fakeredis: %q is not a %q", line, kind)
	}
	n, err := strconv.Atoi(strings.TrimRight(line[1:], "\r\n"))
	if err == nil && n < 0 {
		err = fmt.Errorf("fakeredis: the length %d is negative", n)
	}
	return n, err
}
