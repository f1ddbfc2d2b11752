package api

import (
	"context"
	"errors"
	"slices"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/store"
)

const formatJSON = "json"

// maxBetween bounds the commits between two artifacts that are listed.
const maxBetween = 50

// sides adds to a comparison how both sides were measured, without test cases that were not
// asked for, and what was compared before and after them.
func (s *resultHandlers) sides(ctx context.Context, in *compare, c *apiclient.Comparison) error {
	var parts [2][]results.Part
	for i, tags := range [][2]string{{in.A, in.B}, {in.B, in.A}} {
		all, err := s.record.Origins(ctx, in.Project, tags[0], tags[1])
		if err != nil {
			return err
		}
		origins := all
		if in.narrows() {
			hidden := func(o store.Origin) bool { return !in.wants(o.TestCase) || in.InTurns && !o.InTurns }
			origins = slices.DeleteFunc(slices.Clone(all), hidden)
		}
		parts[i] = results.Parts(origins)
		side := apiclient.ComparedSide{Tag: tags[0], Parts: measuredParts(parts[i])}
		if in.Runs && len(origins) > 0 {
			side.Runs = make([]apiclient.MeasuredIn, len(origins))
			for k := range origins {
				side.Runs[k] = apiclient.MeasuredIn{TestCase: origins[k].TestCase, Run: origins[k].Run, InTurns: origins[k].InTurns}
			}
		}
		c.Sides = append(c.Sides, side)
	}
	c.Differences = results.Differences(parts[0], parts[1])
	r, err := s.named.RequestByTag(ctx, in.Project, in.A)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	c.Previous = r.Baseline
	if c.Next, err = s.record.NextCompared(ctx, in.Project, in.B); err != nil {
		return err
	}
	commits, err := s.record.CommitsBetween(ctx, in.Project, in.A, in.B, maxBetween+3)
	for _, one := range commits {
		switch one.SHA {
		case in.A, in.B:
			for i := range c.Sides {
				if c.Sides[i].Tag == one.SHA {
					commit := commitOf(one)
					c.Sides[i].Commit = &commit
				}
			}
		default:
			c.Between = append(c.Between, commitOf(one))
		}
	}
	if c.MoreBetween = len(c.Between) > maxBetween; c.MoreBetween {
		c.Between = c.Between[:maxBetween]
	}
	return err
}

func measuredParts(parts []results.Part) []apiclient.MeasuredPart {
	out := make([]apiclient.MeasuredPart, len(parts))
	for i, p := range parts {
		out[i] = apiclient.MeasuredPart{
			Target: p.Target, SizeClass: p.SizeClass, Pool: p.Pool, HardwareID: p.HardwareID, CoLocated: p.CoLocated, Segment: p.Segment, Suite: p.Suite,
			InTurns: p.InTurns, Collectors: p.Collectors, TestCases: p.TestCases, MinIterations: p.Fewest, MaxIterations: p.Most, First: p.First, Last: p.Last,
		}
	}
	return out
}
