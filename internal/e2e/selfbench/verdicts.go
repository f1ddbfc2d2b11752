package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/stats/simulate"
)

// verdictsPlan bounds the part verdicts: a simulation, which needs no stack and no idle machine.
type verdictsPlan struct {
	requests int
	noise    string // ID of one noise; empty: all
}

// Of the simulated projects.
const (
	verdictsSeed      = 2026
	verdictsTestCases = 685
	verdictsBudget    = 0.10 // extra runs
	commitsOfProject  = 100
	commitsOfYoung    = 20
	formerShare       = 5 // one of so many requests is compared by the former rule as well
)

const (
	unitNotified       = "notified-%"        // requests with a false notification
	unitFalseRows      = "false-rows"        // per request
	unitExtra          = "extra-%"           // runs that measuring again adds
	unitMostExtra      = "most-extra-%"      // the same of the request with most
	unitSuspects       = "suspects"          // rows that raised a suspicion, per request
	unitRemeasured     = "remeasured"        // rows that were measured in turns, per request
	unitUndecided      = "undecided-%"       // of the rows that were measured in turns
	unitFormerNotified = "former-notified-%" // by the former rule
	unitFormerRows     = "former-rows"
	unitMissed         = "missed-%"        // changes that were measured in turns and not found
	unitLate           = "late-%"          // changes that were not found within three commits
	unitNoDifference   = "no-difference-%" // changes that were said to make no difference
)

func (v verdictsPlan) noises() []simulate.Noise {
	return slices.DeleteFunc(simulate.Noises(), func(n simulate.Noise) bool { return v.noise != "" && v.noise != n.ID })
}

func noiseIDs() string {
	var ids []string
	for _, n := range simulate.Noises() {
		ids = append(ids, n.ID)
	}
	return strings.Join(ids, ", ")
}

func verdictsName(noise, projects string) string {
	return fmt.Sprintf("Verdicts/noise=%s/projects=%s", noise, projects)
}

func plantedName(noise, change string) string {
	return fmt.Sprintf("VerdictsPlanted/noise=%s/change=%s", noise, change)
}

// Projects with and without a history.
const (
	oldProjects   = "old"
	youngProjects = "young"
)

// measureVerdicts simulates requests of each noise.
func measureVerdicts(ctx context.Context, v verdictsPlan, report *report, progress func(string, ...any)) error {
	for _, noise := range v.noises() {
		start := time.Now()
		plan := simulate.Plan{
			Noise: noise, TestCases: verdictsTestCases, Budget: verdictsBudget, Former: formerShare,
			Random:   func(project uint64) simulate.Random { return rand.New(rand.NewPCG(verdictsSeed, project)) },
			Projects: projectsOf(v.requests, commitsOfProject), Commits: min(v.requests, commitsOfProject),
		}
		if err := simulateQuiet(ctx, plan, oldProjects, report); err != nil {
			return err
		}
		if noise.Everything() {
			progress("%s took %.0f s", noise.Name, time.Since(start).Seconds())
			continue
		}
		if slices.Contains(noisesOfYoung(), noise.ID) {
			young := plan
			young.Young, young.Former = true, 0
			young.Projects, young.Commits = projectsOf(v.requests, commitsOfYoung), min(v.requests, commitsOfYoung)
			if err := simulateQuiet(ctx, young, youngProjects, report); err != nil {
				return err
			}
		}
		plan.Planted, plan.Former = true, 0
		if err := simulatePlanted(ctx, plan, report); err != nil {
			return err
		}
		progress("%s took %.0f s", noise.Name, time.Since(start).Seconds())
	}
	return nil
}

// noisesOfYoung returns the noises of projects without a history: the usual one, and two that only a history reveals.
func noisesOfYoung() []string { return []string{"normal", "kappa-2", "bimodal-by-session"} }

func projectsOf(requests, commits int) int { return max(1, (requests+commits-1)/commits) }

func simulateQuiet(ctx context.Context, plan simulate.Plan, projects string, report *report) error {
	f, err := simulate.Simulate(ctx, plan, runtime.NumCPU())
	if err != nil {
		return err
	}
	values := []benchfmt.Value{
		{Value: share(f.Notified, f.Requests), Unit: unitNotified},
		{Value: ratio(f.FalseRows, f.Requests), Unit: unitFalseRows},
		{Value: share(f.ExtraRuns, f.Runs), Unit: unitExtra},
		{Value: rounded(100*f.MostExtraRuns, 2), Unit: unitMostExtra},
		{Value: ratio(f.Suspicions, f.Requests), Unit: unitSuspects},
		{Value: ratio(f.Remeasured, f.Requests), Unit: unitRemeasured},
		{Value: share(f.Undecided, f.Remeasured), Unit: unitUndecided},
	}
	if plan.Former > 0 {
		values = append(values,
			benchfmt.Value{Value: share(f.FormerNotified, f.FormerRequests), Unit: unitFormerNotified},
			benchfmt.Value{Value: ratio(f.FormerRows, f.FormerRequests), Unit: unitFormerRows})
	}
	return report.add(figure{verdictsName(plan.Noise.ID, projects), f.Requests, values})
}

func simulatePlanted(ctx context.Context, plan simulate.Plan, report *report) error {
	f, err := simulate.Simulate(ctx, plan, runtime.NumCPU())
	if err != nil {
		return err
	}
	for i, change := range simulate.Changes() {
		p := f.Planted[i]
		if err := report.add(figure{plantedName(plan.Noise.ID, change.ID), p.Planted, []benchfmt.Value{
			{Value: share(p.Remeasured-p.Found, p.Remeasured), Unit: unitMissed},
			{Value: share(p.Planted-p.Found, p.Planted), Unit: unitLate},
			{Value: share(p.NoDifference, p.Planted), Unit: unitNoDifference},
		}}); err != nil {
			return err
		}
	}
	return nil
}

// share returns a part in per cent, 0 of nothing.
func share(part, of int) float64 { return rounded(100*float64(part)/float64(max(of, 1)), 2) }

func ratio(part, of int) float64 { return rounded(float64(part)/float64(max(of, 1)), 4) }

// verdictLimits returns the limits of the simulation.
func verdictLimits(v verdictsPlan) []limit {
	var all []limit
	for _, noise := range v.noises() {
		if !noise.Assured() {
			continue
		}
		name := verdictsName(noise.ID, oldProjects)
		all = append(all, limit{part: partVerdicts, benchmark: name, unit: unitNotified, most: 1}, limit{part: partVerdicts, benchmark: name, unit: unitFalseRows, most: 0.05})
		if noise.Everything() {
			continue // it was asked for
		}
		all = append(all, limit{part: partVerdicts, benchmark: name, unit: unitMostExtra, most: 100 * verdictsBudget})
		twice := simulate.Changes()[simulate.TwiceRelevant]
		all = append(all, limit{part: partVerdicts, benchmark: plantedName(noise.ID, twice.ID), unit: unitNoDifference, most: 1})
		for _, kind := range []int{simulate.Instructions, simulate.WallTime} {
			name := plantedName(noise.ID, simulate.Changes()[kind].ID)
			if kind == simulate.WallTime { // twice the relevant change, too
				all = append(all, limit{part: partVerdicts, benchmark: name, unit: unitNoDifference, most: 1})
			}
			switch noise.ID {
			case "normal", "log-normal", "ar1", "offset-0.6", "kappa-0.6":
				all = append(all, limit{part: partVerdicts, benchmark: name, unit: unitMissed, most: 3}, limit{part: partVerdicts, benchmark: name, unit: unitLate, most: 15})
			case "heavy-tail":
				all = append(all, limit{part: partVerdicts, benchmark: name, unit: unitMissed, most: 10})
			}
		}
	}
	return all
}
