package measure

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Load describes other activity of the machine during a run, a reason to distrust its results.
type Load struct {
	// AverageBegin and AverageEnd are the load average over one minute.
	AverageBegin float64 `json:"average_begin"`
	AverageEnd   float64 `json:"average_end"`
	// StealTicks is the time that the hypervisor gave to others while a CPU was ready to run, summed over all CPUs, in units
	// of 1/100 s (USER_HZ).
	StealTicks int64 `json:"steal_ticks"`
	// CPUPressure is the time during which at least one task waited for a CPU; nil without pressure information.
	CPUPressure *time.Duration `json:"cpu_pressure_ns,omitempty"`
}

// LoadSampler measures the load from its start to each call of End.
type LoadSampler struct {
	root  string
	begin loadReading
}

type loadReading struct {
	average  float64
	steal    int64
	pressure *time.Duration
}

// StartLoad starts a measurement, reading /proc below root, "/" outside tests.
func StartLoad(root string) (*LoadSampler, error) {
	begin, err := readLoad(root)
	if err != nil {
		return nil, err
	}
	return &LoadSampler{root: root, begin: begin}, nil
}

// End returns the load since the start. It may be called again later.
func (s *LoadSampler) End() (Load, error) {
	end, err := readLoad(s.root)
	if err != nil {
		return Load{}, err
	}
	load := Load{
		AverageBegin: s.begin.average,
		AverageEnd:   end.average,
		// Steal is known to go backwards when a virtual machine is moved to another host.
		StealTicks: max(0, end.steal-s.begin.steal),
	}
	if s.begin.pressure != nil && end.pressure != nil {
		waited := *end.pressure - *s.begin.pressure
		load.CPUPressure = &waited
	}
	return load, nil
}

func readLoad(root string) (loadReading, error) {
	r := factReader{root}
	var reading loadReading
	average, _, _ := strings.Cut(r.text("proc/loadavg"), " ")
	var err error
	if reading.average, err = strconv.ParseFloat(average, 64); err != nil {
		return loadReading{}, fmt.Errorf("reading /proc/loadavg: %w", err)
	}
	if reading.steal, err = r.steal(); err != nil {
		return loadReading{}, fmt.Errorf("reading /proc/stat: %w", err)
	}
	if reading.pressure, err = r.pressure(); err != nil {
		return loadReading{}, fmt.Errorf("reading /proc/pressure/cpu: %w", err)
	}
	return reading, nil
}

// steal returns the eighth value of the first line of /proc/stat; see proc_stat(5).
func (r factReader) steal() (int64, error) {
	first, _, _ := strings.Cut(r.text("proc/stat"), "\n")
	fields := strings.Fields(first)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, errors.New("no line with the steal time of all CPUs")
	}
	return strconv.ParseInt(fields[8], 10, 64)
}

// pressure returns the total of the "some" line, given in microseconds; see Documentation/accounting/psi.rst of Linux.
func (r factReader) pressure() (*time.Duration, error) {
	content, err := os.ReadFile(r.path("proc/pressure/cpu"))
	if err != nil {
		return nil, nil // built without, or switched off
	}
	for line := range strings.Lines(string(content)) {
		if _, total, ok := strings.Cut(line, " total="); ok && strings.HasPrefix(line, "some ") {
			microseconds, err := strconv.ParseInt(strings.TrimSpace(total), 10, 64)
			if err != nil {
				return nil, err
			}
			waited := time.Duration(microseconds) * time.Microsecond
			return &waited, nil
		}
	}
	return nil, errors.New(`no line "some"`)
}
