package apiclient

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// event is one of a stream of server-sent events.
type event struct{ id, name, data string }

// maxEvent bounds an event, in bytes. An event of samples has some megabytes at most.
const maxEvent = 64 << 20

var errEventTooLarge = errors.New("an event of the stream is too large")

// readEvents calls each for every event of a stream as it arrives, until each returns false or an error, or the stream ends. It
// calls alive for every line, even one that is no part of an event.
func readEvents(r io.Reader, alive func(), each func(event) (more bool, err error)) error {
	lines := bufio.NewReader(r)
	var e event
	var data []string
	size := 0
	for {
		line, err := readLine(lines, maxEvent-size)
		if err != nil {
			return err // an unfinished event does not count
		}
		alive()
		if line == "" {
			if data != nil {
				e.data = strings.Join(data, "\n")
				if more, err := each(e); err != nil || !more {
					return err
				}
			}
			// The ID applies until another one comes.
			e, data, size = event{id: e.id}, nil, 0
			continue
		}
		size += len(line)
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			data = append(data, value)
		}
	}
}

// readLine reads a line without its end, which is "\n" or "\r\n". The end of the stream is an error, also within a line.
func readLine(r *bufio.Reader, most int) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > most:
			return "", errEventTooLarge
		case err == nil:
			return strings.TrimSuffix(string(line[:len(line)-1]), "\r"), nil
		case errors.Is(err, io.EOF):
			return "", io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
}
