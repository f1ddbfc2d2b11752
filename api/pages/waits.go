package pages

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/cli"
)

// waitAPI backs the page of waiting times.
type waitAPI interface {
	WaitStats(ctx context.Context, q apiclient.WaitQuery) (apiclient.WaitStats, error)
}

// Parameters of the page of waiting times.
const (
	sinceParameter   = "since"
	blockParameter   = "block"
	poolParameter    = "pool"
	queueParameter   = "queue"
	projectParameter = "project"
)

var (
	waitPeriods = []string{"6h", "24h", "72h", "168h"}
	waitBlocks  = []string{"15m", "2h"}
)

func (p *Pages) waitPages() []page {
	return []page{{
		pattern: "/stats/wait", parameters: []string{sinceParameter, blockParameter, poolParameter, queueParameter, projectParameter, sortParameter}, show: p.waits,
	}}
}

// shownPlaces bounds the pools and queues of which a page shows figures.
const shownPlaces = 200

type waitsView struct {
	apiclient.WaitStats
	// Since and Block are the parameters, or their defaults.
	Since, Block    string
	Periods, Blocks []string
	// Chosen names the parameters that narrow the page, with their values.
	Chosen []chosenWait
	Bars   waitBars
	Rows   []waitRow
	Order  order
	// Left counts the pools and queues that are not shown.
	Left int
	// Steps says in words how long jobs waited.
	Steps string
}

// chosenWait is a pool, queue or project to which the page is narrowed.
type chosenWait struct{ Parameter, Value string }

// waitRow is a pool and queue with its drawing.
type waitRow struct {
	apiclient.WaitLevel
	Bars waitBars
}

// waitBars is a drawing of blocks, each as high as the number of its jobs, with the late ones at
// the top.
type waitBars struct {
	Width int
	Bars  []bar
	// Most is the number of jobs of the highest block.
	Most int
}

// waits shows how long jobs wait for a collector.
func (p *Pages) waits(v *visit) (*view, error) {
	out := waitsView{
		Since: cmp.Or(v.get(sinceParameter), "24h"), Block: cmp.Or(v.get(blockParameter), waitBlocks[0]), Periods: waitPeriods, Blocks: waitBlocks,
	}
	for _, one := range []struct {
		name, value string
		known       []string
	}{{sinceParameter, out.Since, waitPeriods}, {blockParameter, out.Block, waitBlocks}} {
		if !slices.Contains(one.known, one.value) {
			return nil, badParameter(one.name, one.value, "it may be "+joined(one.known))
		}
	}
	q := apiclient.WaitQuery{Pool: v.get(poolParameter), Queue: v.get(queueParameter), Project: v.get(projectParameter), Since: out.Since, Block: out.Block}
	command := []string{"benchloom", "stats", "wait", "--since", out.Since, "--block", out.Block}
	for _, c := range []chosenWait{{poolParameter, q.Pool}, {queueParameter, q.Queue}, {projectParameter, q.Project}} {
		if c.Value != "" {
			out.Chosen = append(out.Chosen, c)
			command = append(command, "--"+c.Parameter, c.Value)
		}
	}
	var err error
	out.WaitStats, err = v.api.WaitStats(v.Context(), q)
	if err != nil {
		return nil, err
	}
	out.Steps = capital(cli.WaitSteps(out.WaitStats))
	out.Order, err = sorted(v, out.Places,
		by("pool", func(l apiclient.WaitLevel) string { return l.Pool + " " + l.Queue }),
		by("queue", func(l apiclient.WaitLevel) string { return l.Queue + " " + l.Pool }),
		by("share", func(l apiclient.WaitLevel) float64 { return value(l.Share) }),
		by("started", func(l apiclient.WaitLevel) int { return l.Started }),
		by("waiting", func(l apiclient.WaitLevel) int { return l.Waiting }),
		by("median", func(l apiclient.WaitLevel) float64 { return value(l.Median) }),
		by("longest", func(l apiclient.WaitLevel) float64 { return value(l.Longest) }),
	)
	if err != nil {
		return nil, err
	}
	if n := len(out.Places); n > shownPlaces {
		out.Places, out.Left = out.Places[:shownPlaces], n-shownPlaces
	}
	out.Bars = barsOf(out.WaitStats, out.Total.Blocks)
	for _, place := range out.Places {
		out.Rows = append(out.Rows, waitRow{place, barsOf(out.WaitStats, place.Blocks)})
	}
	return &view{
		template: "waits", Title: "Waiting times", Area: "/queues", APIPath: "/api/v1/stats/wait", Command: quoted(command...), Content: out,
	}, nil
}

// waitHeight is the height of the drawing, in units of its view box; a block is hourWidth wide.
const waitHeight = 40

// barsOf draws the blocks of the period. Jobs that wait and are not late are not drawn: what
// becomes of them is not known yet.
func barsOf(s apiclient.WaitStats, blocks []apiclient.WaitBlock) waitBars {
	length := time.Duration(s.BlockSeconds * float64(time.Second))
	first := s.From.Truncate(length)
	out := waitBars{Width: hourWidth * (int(s.Until.Sub(first)/length) + 1)}
	for _, b := range blocks {
		out.Most = max(out.Most, b.Started+b.Overdue)
	}
	for _, b := range blocks {
		counted := b.Started + b.Overdue
		if counted == 0 {
			continue
		}
		x := float64(hourWidth * int(b.From.Sub(first)/length))
		title := fmt.Sprintf("%s UTC: %d of %s in time", b.From.UTC().Format("2006-01-02 15:04"), b.Within, plural(counted, "job"))
		height := func(jobs int) float64 { return math.Round(waitHeight*float64(jobs)/float64(out.Most)*10) / 10 }
		late := height(counted - b.Within)
		if counted > b.Within {
			late = max(late, 2) // stays visible
		}
		whole := max(height(counted), late, 1)
		if late > 0 {
			out.Bars = append(out.Bars, bar{X: x, Y: waitHeight - whole, Width: hourWidth - 1, Height: late, Class: "bad", Title: title})
		}
		if whole > late {
			out.Bars = append(out.Bars, bar{X: x, Y: waitHeight - whole + late, Width: hourWidth - 1, Height: whole - late, Class: "good", Title: title})
		}
	}
	return out
}
