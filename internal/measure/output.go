package measure

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// capture is a writer that passes at most limit bytes on to w and counts all. Writes never fail, so that a program continues
// undisturbed when its output is no longer wanted.
type capture struct {
	w     io.Writer
	limit int64

	mu    sync.Mutex
	total int64
	kept  int64
	err   error
}

func newCapture(w io.Writer, limit int64) *capture {
	if limit == 0 {
		limit = DefaultOutputLimit
	}
	if w == nil {
		w = io.Discard
	}
	return &capture{w: w, limit: limit}
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(len(p))
	keep := p[:min(int64(len(p)), c.limit-c.kept)]
	if len(keep) == 0 || c.err != nil {
		return len(p), nil
	}
	n, err := c.w.Write(keep)
	c.kept += int64(n)
	if err != nil {
		c.err = fmt.Errorf("passing on the command's output: %w", err)
	}
	return len(p), nil
}

// both is a writer to two captures.
type both struct{ first, second *capture }

func (b both) Write(p []byte) (int, error) {
	_, _ = b.first.Write(p)
	return b.second.Write(p)
}

// drainBound limits the time spent reading output after all processes of a command have ended. A descriptor that the command
// passed to another process over a socket would keep the pipe open forever.
const drainBound = 2 * time.Second

// outputs copies a command's output to the caller's writers.
type outputs struct {
	// stdout and stderr are the files for the command.
	stdout, stderr *os.File

	combined, alone *capture   // alone is standard output, nil unless wanted
	readEnds        []*os.File // closed at the end
	writeEnds       []*os.File // closed once the command has started
	copying         sync.WaitGroup
}

// openOutputs creates the pipes; output without a writer goes to null.
func openOutputs(command Command, null *os.File) (*outputs, error) {
	o := &outputs{stdout: null, stderr: null, combined: newCapture(command.Output, command.OutputLimit)}
	if command.Output == nil && command.Stdout == nil {
		return o, nil
	}
	var err error
	if o.stderr, err = o.pipe(o.combined); err != nil {
		return nil, err
	}
	o.stdout = o.stderr
	if command.Stdout == nil {
		return o, nil
	}
	o.alone = newCapture(command.Stdout, command.OutputLimit)
	if o.stdout, err = o.pipe(both{o.alone, o.combined}); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// pipe returns a file for the command; its input is copied to w until all writers have closed it.
func (o *outputs) pipe(w io.Writer) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe for the command's output: %w", err)
	}
	o.readEnds = append(o.readEnds, read)
	o.writeEnds = append(o.writeEnds, write)
	o.copying.Go(func() {
		// w never fails; reading ends with the last writer, or with the deadline of drainBound.
		_, _ = io.Copy(w, read)
	})
	return write, nil
}

// started closes this process's copies of the command's ends of the pipes, so that they end with the command.
func (o *outputs) started() {
	for _, file := range o.writeEnds {
		file.Close()
	}
	o.writeEnds = nil
}

// finish reads the rest of the pipes and adds the byte counts to the sample. It returns the error of a writer.
func (o *outputs) finish(sample *Sample) error {
	o.drain()
	sample.OutputBytes = o.combined.total
	sample.OutputDropped = o.combined.total - o.combined.kept
	if o.alone == nil {
		return o.combined.err
	}
	return errors.Join(o.combined.err, o.alone.err)
}

func (o *outputs) drain() {
	o.started()
	for _, file := range o.readEnds {
		_ = file.SetReadDeadline(time.Now().Add(drainBound))
	}
	o.copying.Wait()
}

// close closes all files. It may be called more than once.
func (o *outputs) close() {
	o.drain()
	for _, file := range o.readEnds {
		file.Close()
	}
	o.readEnds = nil
}
