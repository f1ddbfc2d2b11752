package plan

import (
	"fmt"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
)

// NoProgramError reports that no registered collector of the target has the program of a
// profiler.
type NoProgramError struct {
	Profiler string
	Program  bench.Program
	Target   bench.Target
	err      *placement.Unplaceable
}

func (e *NoProgramError) Error() string {
	return fmt.Sprintf("profiler %s needs the program %s, which no collector for %s has: install the package %s on a collector's machine and start the collector anew",
		e.Profiler, e.Program.Name, e.Target, e.Program.Package)
}

func (e *NoProgramError) Unwrap() error { return e.err }

// profiles plans the jobs of a request for profiles: one for each tag, where the test case
// is measured and the profiler exists.
func (f Facts) profiles() ([]bench.PlannedJob, error) {
	p, at, err := f.profiled()
	if err != nil {
		return nil, err
	}
	tags := []string{f.Request.Tag}
	if f.Request.Versus != "" {
		tags = append(tags, f.Request.Versus)
	}
	var jobs []bench.PlannedJob
	for _, tag := range tags {
		j, err := bench.NewProfileJob(f.Request.Project, tag, f.SuiteHash, p.TestCases[0], f.Request.Profiler)
		if err != nil {
			return nil, err
		}
		j.MinClass = p.MinSize
		jobs = append(jobs, f.job(j, at))
	}
	return jobs, nil
}

// profiled returns the one part of the request's selection and the place for it, on the size
// class of the series, else of the latest job with the test case, else any: nothing is
// learned from a profile.
func (f Facts) profiled() (part, site, error) {
	parts, err := f.parts()
	if err != nil {
		return part{}, site{}, err
	}
	var cases []string
	for _, p := range parts {
		for _, tc := range p.TestCases {
			cases = append(cases, tc.String())
		}
	}
	switch {
	case len(cases) == 0:
		return part{}, site{}, fmt.Errorf("%w: the suite does not measure what was selected", bench.ErrInvalid)
	case len(cases) > 1:
		const shown = 5
		more := ""
		if len(cases) > shown {
			more = ", …"
		}
		return part{}, site{}, fmt.Errorf("%w: the selection holds %d test cases, and a profile is of one: name also its profile, scenario, backend or target. They are %s%s",
			bench.ErrInvalid, len(cases), strings.Join(cases[:min(shown, len(cases))], "; "), more)
	}
	p := f.presumed(parts[0])
	program, err := f.Suite.ProfilerProgram(p.TestCases[0], f.Request.Profiler)
	if err != nil {
		return part{}, site{}, err
	}
	needs := f.requirements(p)
	if program != (bench.Program{}) {
		if needs.Constraints, err = needs.Constraints.And(bench.Constraints{Devices: []string{program.Device()}}); err != nil {
			return part{}, site{}, err
		}
	}
	at, err := placement.Choose(f.Fleet, needs)
	if unplaceable := Unplaceable(err); unplaceable != nil && program != (bench.Program{}) {
		without := f.requirements(p)
		if _, otherwise := placement.Choose(f.Fleet, without); otherwise == nil {
			err = &NoProgramError{f.Request.Profiler, program, p.Target, unplaceable}
		}
	}
	return p, site{at, needs.Constraints}, err
}
