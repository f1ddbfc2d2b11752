package simulate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/benchloom/benchloom/internal/verdict"
)

// Plan describes a simulation.
type Plan struct {
	Noise Noise
	// Random returns the source of random numbers of a project, so that the figures do not depend on how many projects are
	// simulated at a time.
	Random func(project uint64) Random
	// Projects is the number of projects, Commits that of their commits that count, each of them a request.
	Projects, Commits int
	// TestCases is the number of test cases of a project, each with eight metrics.
	TestCases int
	// Budget is the share of a request's runs that re-measuring may add.
	Budget float64
	// Former also compares one of that many commits with its parent by the former rule, which takes longest; 0: none.
	Former int
	// Planted makes a real change with each commit, see [Changes]. It lasts for three commits.
	Planted bool
	// Young begins with the first commit of the project. Otherwise as many commits come before as detection reads.
	Young bool
	// Judge replaces the rule; nil: that of the service.
	Judge Judge
}

// Simulate carries out a plan, with a number of projects at a time.
func Simulate(ctx context.Context, plan Plan, workers int) (Figures, error) {
	if plan.Projects < 1 || plan.Commits < 1 || plan.TestCases < 1 || workers < 1 {
		return Figures{}, errors.New("a simulation needs projects, commits, test cases and workers")
	}
	if plan.Judge == nil {
		plan.Judge = verdict.Family.Judge
	}
	var (
		wait    sync.WaitGroup
		figures = make([]Figures, plan.Projects)
		failed  = make([]error, plan.Projects)
		next    = make(chan int)
	)
	for range workers {
		wait.Go(func() {
			for i := range next {
				figures[i], failed[i] = simulateProject(ctx, plan, plan.Random(uint64(i)))
			}
		})
	}
	for i := range plan.Projects {
		next <- i
	}
	close(next)
	wait.Wait()
	var sum Figures
	for _, f := range figures {
		sum.Add(f)
	}
	return sum, errors.Join(failed...)
}

// simulation is a project with what happens in it.
type simulation struct {
	*project
	plan    Plan
	former  *former
	planted *plants
	Figures
}

func simulateProject(ctx context.Context, plan Plan, random Random) (Figures, error) {
	s := &simulation{project: newProject(plan.Noise, plan.TestCases, random), plan: plan}
	if plan.Former > 0 {
		s.former, s.explaining = newFormer(s.project), true
	}
	if plan.Planted {
		s.planted = newPlants(s.project)
	}
	s.advance()
	if !plan.Young {
		for range window - 1 {
			s.advance()
		}
		// Suspicions of these commits keep others quiet later.
		if err := s.follow(ctx, longest); err != nil {
			return Figures{}, err
		}
		s.Figures = Figures{}
	}
	err := s.follow(ctx, plan.Commits)
	return s.Figures, err
}

// follow handles the requests of the next commits.
func (s *simulation) follow(ctx context.Context, commits int) error {
	for range commits {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("simulating %s: %w", s.noise.Name, err)
		}
		if err := s.request(); err != nil {
			return fmt.Errorf("simulating %s: %w", s.noise.Name, err)
		}
	}
	return nil
}

// request adds a commit, measures it, and decides what changed.
func (s *simulation) request() error {
	if s.planted != nil {
		s.planted.next(&s.Figures)
	}
	s.advance()
	if s.former != nil && s.Requests%s.plan.Former == 0 {
		rows, err := s.former.count(s.project)
		if err != nil {
			return err
		}
		s.FormerRequests++
		s.FormerRows += rows
		s.FormerNotified += min(rows, 1)
	}
	var rows []*row
	var runs int
	var err error
	if s.noise.everything {
		rows, runs, err = s.verifyEverything(s.plan.Judge)
	} else {
		suspects, all := s.suspects()
		budget := int(s.plan.Budget * float64(s.runs()))
		rows, runs, err = s.verify(suspects, budget, s.plan.Judge)
		s.Suspicions += all
	}
	if err != nil {
		return err
	}
	s.count(rows, runs)
	return nil
}

func (s *simulation) count(rows []*row, runs int) {
	s.Requests++
	s.Runs += s.runs()
	s.ExtraRuns += runs
	s.MostExtraRuns = max(s.MostExtraRuns, float64(runs)/float64(s.runs()))
	false_ := 0
	for _, r := range rows {
		s.remember(r)
		s.Remeasured++
		if s.planted != nil && s.planted.count(r, &s.Figures) {
			continue
		}
		switch r.verdict.Kind {
		case verdict.Changed:
			s.Changed++
			false_++
		case verdict.NoDifference:
			s.NoDifference++
		case verdict.Undecided, verdict.NoSuspicion:
			s.Undecided++
			if r.stopped {
				s.Stopped++
			}
		}
	}
	s.FalseRows += false_
	s.Notified += min(false_, 1)
}
