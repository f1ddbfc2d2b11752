package devstack

import (
	"bytes"
	"os"
	"sync"
)

const (
	logLimit  = 10 << 20 // bytes of a log file before it is rotated; one old file is kept
	tailLines = 20       // lines quoted when a process fails
	tailWidth = 1000     // bytes of a quoted line
)

// output receives a process's standard output and error: in a file of bounded
// size, and the last lines in memory.
type output struct {
	path  string
	limit int64

	mu      sync.Mutex
	file    *os.File
	size    int64
	tail    []string
	partial []byte
}

func openOutput(path string, limit int64) (*output, error) {
	o := &output{path: path, limit: limit}
	if err := o.open(); err != nil {
		return nil, err
	}
	return o, nil
}

func (o *output) open() error {
	file, err := os.OpenFile(o.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return err
	}
	o.file, o.size = file, info.Size()
	return nil
}

// Write never fails: a full disk must not end the writing process.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.remember(text)
	if o.size > 0 && o.size+int64(len(text)) > o.limit {
		o.rotate()
	}
	written, _ := o.file.Write(text)
	o.size += int64(written)
	return len(text), nil
}

func (o *output) rotate() {
	if os.Rename(o.path, o.path+".1") != nil {
		return
	}
	old := o.file
	if o.open() == nil {
		_ = old.Close()
	}
}

func (o *output) remember(text []byte) {
	for {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		room := max(0, tailWidth-len(o.partial))
		o.partial = append(o.partial, line[:min(room, len(line))]...)
		if !ended {
			return
		}
		o.tail = append(o.tail, string(o.partial))
		if len(o.tail) > tailLines {
			o.tail = o.tail[len(o.tail)-tailLines:]
		}
		o.partial = o.partial[:0]
		text = rest
	}
}

// forget discards the last lines.
func (o *output) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail, o.partial = nil, nil
}

// last returns the last lines since forget.
func (o *output) last() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := append([]string(nil), o.tail...)
	if len(o.partial) > 0 {
		lines = append(lines, string(o.partial))
	}
	return lines[max(0, len(lines)-tailLines):]
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.file.Close()
}
