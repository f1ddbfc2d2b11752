package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/e2e/slowgo"
	compared "github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/verdict"
)

// The part accuracy compares a real toolchain with itself under another name, and with
// one whose go command burns a fifth more CPU time.
const (
	tagReal = "real"
	tagSame = "same"
	tagSlow = "slow"

	byCommand = "command" // 'benchloom bench'
	byService = "service" // requests, measured in turns
)

func accuracyName(by, toolchain string) string {
	return fmt.Sprintf("Accuracy/by=%s/toolchain=%s", by, toolchain)
}

// accuracyPlan sets the suite and the number of comparisons.
type accuracyPlan struct {
	suite       string // directory of the suite of Go toolchains
	comparisons int    // of each pair of toolchains
	iterations  int    // per side of a comparison
}

// accuracy compares toolchains with a known difference.
type accuracy struct {
	options
	dir        string
	toolchains map[string]string // directories by tag
}

// measureAccuracy compares a toolchain with itself and with a slower one, on the
// command line and through the service.
func measureAccuracy(ctx context.Context, o options, report *report, progress func(string, ...any)) (err error) {
	dir, err := os.MkdirTemp("", "benchloom-selfbench-")
	if err != nil {
		return fmt.Errorf("making a work directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("finding the Go toolchain: %w", err)
	}
	goroot := strings.TrimSpace(string(out))
	slow, err := slowgo.Make(ctx, goroot, dir)
	if err != nil {
		return err
	}
	a := &accuracy{options: o, dir: dir, toolchains: map[string]string{tagReal: goroot, tagSame: goroot, tagSlow: slow}}
	s, err := livestack.Start(ctx, o.programs())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(err == nil)) }()
	if err := a.apply(ctx, s); err != nil {
		return err
	}
	for n := range o.accuracy.comparisons {
		for _, by := range []string{byCommand, byService} {
			for _, tag := range []string{tagSame, tagSlow} {
				progress("accuracy %d of %d: %s, by the %s", n+1, o.accuracy.comparisons, tag, by)
				compare := a.byCommand
				if by == byService {
					compare = func(ctx context.Context, tag string) ([]compared.Row, error) {
						return a.byService(ctx, s, numbered(tag, n))
					}
				}
				results, err := compare(ctx, tag)
				if err != nil {
					return fmt.Errorf("comparing toolchains by the %s: %w", by, err)
				}
				f, err := accuracyFigure(by, tag, results)
				if err != nil {
					return err
				}
				if err := report.add(f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// accuracyFigure returns what a comparison found for CPU time. There must be exactly one such result. A verdict is wrong if it
// says what is not so. Undecided is not wrong, but counted.
func accuracyFigure(by, tag string, results []compared.Row) (figure, error) {
	results = slices.DeleteFunc(results, func(r compared.Row) bool { return r.Metric != string(bench.CPUTime) })
	if len(results) != 1 {
		return figure{}, fmt.Errorf("the comparison has %d results for CPU time instead of one", len(results))
	}
	r := results[0]
	expected, wrong := 0.0, r.Is(verdict.Changed)
	if tag == tagSlow {
		expected, wrong = slowgo.Slowdown, r.Is(verdict.NoDifference) || r.Direction == compared.Improvement
	}
	change := r.Estimate().Value
	return figure{name: accuracyName(by, tag), iters: r.B.N, values: []benchfmt.Value{
		{Value: 100 * change, Unit: unitChange},
		{Value: 100 * math.Abs(change-expected), Unit: unitOff},
		{Value: indicator(wrong), Unit: unitWrong},
		{Value: indicator(r.Is(verdict.Undecided)), Unit: unitUndecidedVerdicts},
	}}, nil
}

// indicator returns 1 if a condition holds, else 0.
func indicator(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

func (a *accuracy) byCommand(ctx context.Context, tag string) ([]compared.Row, error) {
	out, err := exec.CommandContext(ctx, a.program, "bench", a.accuracy.suite, "--artifact", tag, "--vs", tagReal,
		"--goroot", tag+"="+a.toolchains[tag], "--goroot", tagReal+"="+a.toolchains[tagReal], "--cache-dir", filepath.Join(a.dir, "cache"),
		"--benchmark", "go-toml", "--profile", "build", "--scenario", "full", "--backend", "gc", "--iterations", fmt.Sprint(a.accuracy.iterations), "-o", "json").Output()
	if err != nil {
		return nil, fmt.Errorf("running 'benchloom bench': %w: %s", err, out)
	}
	var found struct {
		Comparison compared.Report `json:"comparison"`
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return nil, fmt.Errorf("reading the comparison: %w", err)
	}
	return found.Comparison.Rows, nil
}

// apply applies a project with the suite and the toolchains as artifacts.
func (a *accuracy) apply(ctx context.Context, s *livestack.Stack) error {
	bundle, err := suite.Pack(a.accuracy.suite)
	if err != nil {
		return err
	}
	if _, err := s.API.PutSuite(ctx, bundle.Hash, bundle.Archive); err != nil {
		return err
	}
	tags := make(map[string]bench.TagSource)
	for tag, dir := range a.toolchains {
		from := bench.TagSource{Provider: "goroot", Parameters: map[string]string{"path": dir}}
		tags[tag] = from
		for n := range a.accuracy.comparisons {
			tags[numbered(tag, n)] = from
		}
	}
	config := bench.ProjectConfig{Artifacts: bench.ArtifactSource{Tags: tags}}
	_, err = s.API.ApplyProject(ctx, apiclient.Project{Name: "go", SuiteHash: bundle.Hash, Config: config}, false)
	return err
}

// numbered returns the name of a toolchain in the nth comparison by the service, which
// would answer with the stored results if it were asked twice for the same pair.
func numbered(tag string, n int) string { return fmt.Sprint(tag, "-", n+1) }

func (a *accuracy) byService(ctx context.Context, s *livestack.Stack, tag string) ([]compared.Row, error) {
	r, err := s.API.CreateRequest(ctx, apiclient.NewRequest{Project: "go", Type: bench.AdHoc, Tag: tag, Versus: tagReal, Selection: bench.Selection{
		Benchmarks: []string{"go-toml"}, Profiles: []string{"build"}, Scenarios: []string{"full"}, Backends: []string{"gc"}, Iterations: a.accuracy.iterations,
	}})
	if err != nil {
		return nil, err
	}
	for {
		d, err := s.API.Request(ctx, string(r.ID))
		switch {
		case err != nil:
			return nil, err
		case d.Status == bench.Completed && d.Outcome != bench.Success:
			return nil, fmt.Errorf("request %s ended with %s: %s", r.ID, d.Outcome, d.Message)
		case d.Status == bench.Completed:
			c, err := s.API.Compare(ctx, apiclient.CompareQuery{Project: "go", A: tagReal, B: tag, Metrics: []bench.Metric{bench.CPUTime}, OnlyInTurns: true})
			return c.Result.Rows, err
		}
		if err := sleep(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}
