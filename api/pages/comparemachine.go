package pages

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/report"
)

// rowParameter is the ID of a row of a comparison.
const rowParameter = "row"

func (p *Pages) comparedMachinePage() page {
	return page{pattern: "/projects/{project}/compare/machine", parameters: []string{aParameter, bParameter, rowParameter, openParameter}, show: p.comparedMachine}
}

// comparedMachine returns the address of what the machine did while a row was measured.
func comparedMachine(project, a, b, row string) string {
	return "/projects/" + segments(project) + "/compare/machine?" + url.Values{aParameter: {a}, bParameter: {b}, rowParameter: {row}}.Encode()
}

// machineView shows what the machine did while both sides of a row were measured.
type machineView struct {
	apiclient.ComparedMachine
	// Name and Parameters are of the row's test case, Measured is the row's metric.
	Name, Parameters, Measured string
	Sides                      []machineSide
	// Series stand beside each other, Left counts the series of single CPUs, interfaces and GPUs.
	Series []machineSeries
	Left   int
	// Columns are the series of Commands, Others counts the other series, and More the commands that are not listed.
	Columns      []string
	Commands     []machineCommand
	Others, More int
	// Row leads to the row in the comparison; CSV and JSON are the addresses of all values.
	Row, CSV, JSON string
}

// machineSide is one side with its runs in words.
type machineSide struct {
	apiclient.MachineSide
	// Name is "A" or "B".
	Name string
	// Lacks says that nothing, or not everything, of the side was recorded; empty: everything was.
	Lacks string
}

// machineSeries is a series of both sides.
type machineSeries struct {
	Title, Of, Metric string
	Sides             [2]commandCell
}

// machineCommand is a measured command of one of the sides.
type machineCommand struct {
	Side      string
	Run       bench.RunID
	Batch     int
	Iteration int
	Cells     []commandCell
}

// comparedMachine shows what the machine did while the values of a row were measured.
func (p *Pages) comparedMachine(v *visit) (*view, error) {
	project, row, open := v.PathValue("project"), v.get(rowParameter), v.get(openParameter)
	if open != "" && open != openCommands {
		return nil, badParameter(openParameter, open, "it may be "+openCommands)
	}
	if row == "" && v.get(aParameter) == "" && v.get(bParameter) == "" {
		return noRow(v, project)
	}
	key, err := report.ParseRowID(row)
	if err != nil {
		return nil, badParameter(rowParameter, row, "it is the ID of a row, as the rows of a comparison link to it")
	}
	if v.get(bParameter) == "" {
		return nil, badParameter(bParameter, "", "it is the tag of what is judged")
	}
	found, err := v.api.ComparedMachine(v.Context(), project, v.get(aParameter), v.get(bParameter), row)
	if err != nil {
		return nil, err
	}
	if found.A != v.get(aParameter) || found.B != v.get(bParameter) { // completed, or written in full
		return nil, v.moved(map[string]string{aParameter: found.A, bParameter: found.B})
	}
	named := report.Row{Key: key}
	out := machineView{
		ComparedMachine: found, Name: named.Name(), Parameters: testCase(key.TestCase).String(), Measured: key.Metric,
		Row: comparison(project, found.A, found.B) + "&" + url.Values{openParameter: {row}}.Encode() + "#row",
	}
	query := url.Values{"project": {project}, aParameter: {found.A}, bParameter: {found.B}, rowParameter: {row}}
	out.JSON = "/api/v1/compare/machine?" + query.Encode()
	query.Set("format", "csv")
	out.CSV = "/api/v1/compare/machine?" + query.Encode()
	out.describe(open == openCommands)
	return &view{
		template: "comparemachine", Title: "Machine beside " + out.Name, APIPath: out.JSON, Content: &out,
		Crumbs: []link{projectLink(project), {comparison(project, found.A, found.B), found.B + " compared with " + found.A}},
	}, nil
}

// noRow leads to the comparison, whose rows lead here.
func noRow(v *visit, project string) (*view, error) {
	of, err := v.api.Project(v.Context(), project)
	if err != nil {
		return nil, err
	}
	return &view{template: "comparemachine", Title: "Machine beside a row", Crumbs: []link{projectLink(of.Name), {"/projects/" + segments(of.Name) + "/compare", "Compare"}}}, nil
}

// describe puts both sides beside each other. All measured commands are listed on request.
func (m *machineView) describe(all bool) {
	bySeries := make(map[profiler.Series]*machineSeries)
	var order []profiler.Series
	for i, side := range m.ComparedMachine.Sides[:min(len(m.ComparedMachine.Sides), 2)] {
		one := machineSide{MachineSide: side, Name: []string{"A", "B"}[i]}
		one.Lacks = lacking(one)
		m.Sides = append(m.Sides, one)
		for _, total := range side.Series {
			if bySeries[total.Series] == nil {
				bySeries[total.Series] = &machineSeries{Title: titleOf(total.Name), Of: lineName(total.Series), Metric: total.Name}
				order = append(order, total.Series)
			}
			bySeries[total.Series].Sides[i] = commandCell{cli.InUnit(total.Mean, total.Unit), cli.InUnit(total.Max, total.Unit)}
		}
	}
	slices.SortFunc(order, compareSeries)
	var columns []profiler.Series
	for _, s := range order {
		if s.Device != "" {
			m.Left++
			continue
		}
		m.Series = append(m.Series, *bySeries[s])
		columns = append(columns, s)
	}
	// The job's series first: they are about the command alone.
	slices.SortStableFunc(columns, func(a, b profiler.Series) int { return cmp.Compare(a.Scope, b.Scope) })
	m.Others = max(0, len(columns)-commandSeries)
	columns = columns[:len(columns)-m.Others]
	for _, s := range columns {
		m.Columns = append(m.Columns, titleOf(s.Name)+", "+lineName(s))
	}
	most := commandsShown
	if all {
		most = mostCommands
	}
	for _, side := range m.Sides {
		for _, run := range side.Runs {
			m.add(side.Name, run, columns, most)
		}
	}
}

// add lists the measured commands of a run, up to most commands in all.
func (m *machineView) add(side string, run apiclient.MachineRun, columns []profiler.Series, most int) {
	places := make([]map[int]commandCell, len(columns))
	for i, s := range columns {
		places[i] = make(map[int]commandCell)
		for _, one := range run.Series {
			if one.Series != s {
				continue
			}
			for k, batch := range one.Batches {
				places[i][batch] = commandCell{cli.InUnit(one.Mean[k], one.Unit), cli.InUnit(one.Max[k], one.Unit)}
			}
		}
	}
	for _, c := range run.Commands {
		if len(m.Commands) == most {
			m.More++
			continue
		}
		row := machineCommand{Side: side, Run: run.Run, Batch: c.Batch, Iteration: c.Iteration}
		for i := range columns {
			row.Cells = append(row.Cells, places[i][c.Batch])
		}
		m.Commands = append(m.Commands, row)
	}
}

// lacking says what of a side was not recorded.
func lacking(side machineSide) string {
	whole, none := 0, 0
	for _, run := range side.Runs {
		switch run.State {
		case apiclient.MachineWhole:
			whole++
		case apiclient.MachineNone:
			none++
		}
	}
	switch n := len(side.Runs); {
	case n == 0:
		return "No value of " + side.Name + " is compared, so there is no run to show."
	case none == n:
		return side.Name + " was not recorded."
	case whole < n && n == 1:
		return side.Name + " was recorded in part only."
	case whole < n:
		return side.Name + " was recorded in part only: of " + strconv.Itoa(n) + " runs, " + strconv.Itoa(whole) + " as a whole."
	}
	return ""
}
