package faultproxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
)

const (
	// maxLength is the largest length that a frame may state: the longest string of Redis, and more
	// elements than it sends.
	maxLength = 512 << 20
	// pieceSize is how much is read at a time, so that a false length costs no memory.
	pieceSize = 64 << 10
)

// frame is one value on the network, a request, a reply or a push, with all that it contains.
type frame struct {
	raw    []byte
	body   int  // where the value begins, behind its attributes
	opaque bool // only bytes, as is all that follows
}

// kind returns the byte that identifies the kind of the value.
func (f frame) kind() byte { return f.raw[f.body] }

// words returns the strings, numbers and nulls that an array or a push begins with, up to the first
// element that has elements itself. A null is an empty word. Other frames have none.
func (f frame) words() []string {
	if kind := f.kind(); kind != '*' && kind != '>' {
		return nil
	}
	header, rest, _ := bytes.Cut(f.raw[f.body:], []byte("\r\n"))
	n, _ := strconv.Atoi(string(header[1:])) // the reader has checked that it is a number
	var words []string
	for len(words) < n {
		header, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		word := header[1:]
		switch header[0] {
		case '$', '=', '!':
			size, _ := strconv.Atoi(string(word))
			word = nil
			if size >= 0 {
				word, rest = rest[:size], rest[size+len("\r\n"):]
			}
		case '+', '-', ':', ',', '#', '(', '_':
		default:
			return words
		}
		words = append(words, string(word))
	}
	return words
}

// errMalformed is returned for bytes that are not a frame. Only the reader sees it, and goes on
// with bytes.
var errMalformed = errors.New("malformed frame")

// frameReader cuts what comes from one side into frames.
type frameReader struct {
	from     *bufio.Reader
	requests bool // only arrays of strings are allowed
	opaque   bool // it has given up
}

func newFrameReader(from io.Reader, requests bool) *frameReader {
	return &frameReader{from: bufio.NewReaderSize(from, pieceSize), requests: requests}
}

// next returns the next frame, and takes no byte beyond it. It returns malformed input, and all
// that follows, as bytes, and io.ErrUnexpectedEOF for a frame that the other side does not
// complete.
func (r *frameReader) next() (frame, error) {
	if r.opaque {
		return r.piece()
	}
	f, err := r.read()
	if errors.Is(err, errMalformed) {
		r.opaque = true
		if len(f.raw) == 0 { // the first byte was enough, and is not read yet
			return r.piece()
		}
		return frame{raw: f.raw, opaque: true}, nil
	}
	return f, err
}

// piece returns what there is, once there is something.
func (r *frameReader) piece() (frame, error) {
	buffer := make([]byte, pieceSize)
	n, err := r.from.Read(buffer)
	if n > 0 {
		err = nil // the next read returns it again
	}
	return frame{raw: buffer[:n], opaque: true}, err
}

// read reads one frame. It counts missing values instead of recursing into them, so depth costs
// nothing. With errMalformed the frame holds what was read.
func (r *frameReader) read() (frame, error) {
	var f frame
	begun := false // the value itself has begun, not only its attributes
	for missing := 1; missing > 0; {
		first := !begun && missing == 1
		if first {
			f.body = len(f.raw)
		}
		kind, n, err := r.header(&f, first)
		switch {
		case errors.Is(err, io.EOF) && len(f.raw) > 0:
			return f, io.ErrUnexpectedEOF
		case err != nil:
			return f, err
		}
		begun = begun || first && kind != '|'
		switch kind {
		case '*', '~':
			missing += max(n, 0) - 1
		case '>':
			missing += n
			// Such a push within another value is no element of it: Redis 6 sends invalidations
			// there.
			if first {
				missing--
			}
		case '%':
			missing += 2*n - 1
		case '|': // the value follows
			missing += 2 * n
		case '$', '=', '!':
			missing--
			err = r.text(&f, n)
		default:
			missing--
		}
		if missing > maxLength {
			err = errMalformed
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// header reads the line that a value begins with, and the number in it, if it has one.
func (r *frameReader) header(f *frame, first bool) (kind byte, n int, err error) {
	peeked, err := r.from.Peek(1)
	if err != nil {
		return 0, 0, err
	}
	kind = peeked[0]
	if !r.allowed(kind, first) {
		return 0, 0, errMalformed
	}
	start := len(f.raw)
	counted := bytes.IndexByte([]byte("*~>%|$=!"), kind) >= 0
	for {
		piece, err := r.from.ReadSlice('\n')
		f.raw = append(f.raw, piece...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return 0, 0, err
		}
		if counted || len(f.raw)-start > maxLength {
			return 0, 0, errMalformed
		}
	}
	line, complete := bytes.CutSuffix(f.raw[start+1:], []byte("\r\n"))
	if !complete || bytes.IndexByte(line, '\r') >= 0 {
		return 0, 0, errMalformed
	}
	if !counted {
		return kind, 0, nil
	}
	n, err = strconv.Atoi(string(line))
	null := n == -1 && (kind == '*' || kind == '$')
	if err != nil || n > maxLength || n < 0 && !null {
		return 0, 0, errMalformed
	}
	return kind, n, nil
}

// allowed reports whether a value may be of this kind.
func (r *frameReader) allowed(kind byte, first bool) bool {
	switch {
	case !r.requests:
		return bytes.IndexByte([]byte("+-:_,#($=!*~>%|"), kind) >= 0
	case first:
		return kind == '*'
	default:
		return kind == '$'
	}
}

// text reads a string of n bytes, or none for a null, and its end of line.
func (r *frameReader) text(f *frame, n int) error {
	if n < 0 {
		return nil
	}
	for left := n + len("\r\n"); left > 0; {
		size := min(left, pieceSize)
		f.raw = slices.Grow(f.raw, size)
		got, err := io.ReadFull(r.from, f.raw[len(f.raw):len(f.raw)+size])
		f.raw = f.raw[:len(f.raw)+got]
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		left -= size
	}
	if !bytes.HasSuffix(f.raw, []byte("\r\n")) {
		return errMalformed
	}
	return nil
}
