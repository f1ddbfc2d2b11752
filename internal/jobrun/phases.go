package jobrun

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/benchloom/benchloom/internal/measure"
)

// PhasesFile is the file in TMPDIR to which a measured command may write its own phases, see docs/profiling.md. No environment
// variable names it: another variable would shift the stack of every command, and thereby results.
const PhasesFile = "benchloom-phases"

// Bounds of the part that is read of a command's own phases.
const (
	maxPhaseBytes     = 1 << 20 // of the file
	maxPhaseLineBytes = 256
	maxPhaseNameBytes = 80
	maxPhases         = 1000
)

// ownPhase is a part of a measured command, marked by the command itself.
type ownPhase struct {
	name       string
	begin, end time.Time
}

// forgetPhases removes what an earlier command has left.
func (r *runner) forgetPhases() {
	root, name, err := r.phasesFile()
	if err != nil {
		return // then there is nothing to read either
	}
	defer root.Close()
	_ = root.Remove(name)
}

// phasesFile returns the slot's directory and the name of the file in it. Commands own everything on the way, so symbolic links
// must not lead out.
func (r *runner) phasesFile() (*os.Root, string, error) {
	name, err := filepath.Rel(r.m.Sandbox.WorkDir(), filepath.Join(r.m.Sandbox.TempDir(), PhasesFile))
	if err != nil {
		return nil, "", err
	}
	root, err := os.OpenRoot(r.m.Sandbox.WorkDir())
	return root, name, err
}

// ownPhases returns the phases that the last command has marked, and why some of its lines were ignored; empty if none was.
func (r *runner) ownPhases(begin time.Time) (phases []ownPhase, ignored string) {
	root, name, err := r.phasesFile()
	if err != nil {
		return nil, ""
	}
	defer root.Close()
	// Opening a named pipe would wait for a writer.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ""
	}
	if err != nil {
		return nil, err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, PhasesFile + " is no regular file"
	}
	return readPhases(file, begin, r.m.Now())
}

// readPhases reads the lines "begin NAME TIME", "end NAME TIME" and "phase NAME SECONDS" of a command that ran between two times. A
// phase that never ends, or of which only the length is known, ends with its command.
func readPhases(from io.Reader, begin, end time.Time) (phases []ownPhase, ignored string) {
	open := map[string]time.Time{}
	var order []string // of the open phases
	wrong, first := 0, ""
	refuse := func(line int, format string, arguments ...any) {
		if wrong++; wrong == 1 {
			first = fmt.Sprintf("line %d: ", line) + fmt.Sprintf(format, arguments...)
		}
	}
	lines := bufio.NewReaderSize(io.LimitReader(from, maxPhaseBytes), maxPhaseLineBytes)
	number, full := 0, false
	for {
		text, long, err := lines.ReadLine()
		if err != nil {
			break
		}
		number++
		if long {
			for long && err == nil {
				_, long, err = lines.ReadLine()
			}
			refuse(number, "it is longer than %d bytes", maxPhaseLineBytes)
			continue
		}
		kind, name, value, err := parsePhase(string(text))
		if err != nil {
			refuse(number, "%v", err)
			continue
		}
		if full = len(phases)+len(open) >= maxPhases && kind != "end"; full {
			break
		}
		at := begin.Add(seconds(value - unixSeconds(begin)))
		opened, isOpen := open[name]
		switch {
		case kind == "phase" && end.Add(-seconds(value)).Before(begin):
			refuse(number, "%s is longer than its command", name)
		case kind == "phase":
			phases = append(phases, ownPhase{name, end.Add(-seconds(value)), end})
		case at.Before(begin) || at.After(end):
			refuse(number, "%s lies outside of its command; write the time now, in seconds since 1970", name)
		case kind == "begin" && isOpen:
			refuse(number, "%s has begun already", name)
		case kind == "begin":
			open[name] = at
			order = append(order, name)
		case !isOpen || at.Before(opened):
			refuse(number, "%s has not begun", name)
		default:
			phases = append(phases, ownPhase{name, opened, at})
			delete(open, name)
		}
	}
	for _, name := range order {
		if opened, still := open[name]; still {
			phases = append(phases, ownPhase{name, opened, end})
			delete(open, name)
		}
	}
	switch {
	case full:
		ignored = fmt.Sprintf("what follows the first %d is left out", maxPhases)
	case wrong > 0:
		ignored = fmt.Sprintf("%d of %d lines are ignored; %s", wrong, number, first)
	}
	return phases, ignored
}

// parsePhase reads one line.
func parsePhase(line string) (kind, name string, value float64, err error) {
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[0] != "begin" && fields[0] != "end" && fields[0] != "phase" {
		return "", "", 0, errors.New("write begin NAME TIME, end NAME TIME or phase NAME SECONDS")
	}
	name = fields[1]
	if len(name) > maxPhaseNameBytes || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", "", 0, fmt.Errorf("a name has at most %d bytes and no control characters", maxPhaseNameBytes)
	}
	const most = 9e9 // seconds: a duration holds 292 years
	value, err = strconv.ParseFloat(fields[2], 64)
	if err != nil || math.IsNaN(value) || value < 0 || value >= most {
		return "", "", 0, fmt.Errorf("%.40q is no number of seconds", fields[2])
	}
	return fields[0], name, value, nil
}

func seconds(value float64) time.Duration {
	return time.Duration(value * float64(time.Second))
}

// unixSeconds is exact to less than a microsecond.
func unixSeconds(t time.Time) float64 { return float64(t.UnixNano()) / float64(time.Second) }

// watched tells the watcher of a measured command that has ended, and of the phases that the command has marked.
func (r *runner) watched(begin time.Time, sample measure.Sample) {
	if sample.Wall <= 0 {
		return // it was not started
	}
	r.m.Watcher.Timed(Measuring, "", begin, begin.Add(sample.Wall))
	phases, ignored := r.ownPhases(begin)
	for _, p := range phases {
		r.m.Watcher.Timed(Measuring, p.name, p.begin, p.end)
	}
	if ignored != "" {
		fmt.Fprintf(r.log, "== phases: %s\n", ignored)
	}
}
