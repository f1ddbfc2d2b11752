package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

// Projects writes a list of projects.
func Projects(w io.Writer, list []apiclient.Project, v View) error {
	if len(list) == 0 {
		return write(w, "There are no projects; create one with 'benchloom project apply -f FILE'.\n")
	}
	t := NewTable(Column{Heading: "project"}, Column{Heading: "suite"}, Column{Heading: "targets"}, Column{Heading: "changed"}, Column{Heading: "description", Flex: true})
	for _, p := range list {
		t.Row(p.Name, p.Suite, targets(p.Config.Targets), Ago(v.Now, p.UpdatedAt), p.Config.Description)
	}
	return t.Write(w, v.Width)
}

func targets(list []bench.Target) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

// Project writes a project's configuration.
func Project(w io.Writer, p apiclient.Project, v View) error {
	class := ""
	if p.Config.Size.Pin() != 0 {
		class = strconv.Itoa(int(p.Config.Size.Pin()))
	}
	policy := p.Config.Queue.Policy
	if policy == "" {
		policy = "spec"
	}
	pairs := [][2]string{
		{"description", p.Config.Description}, {"suite", p.Suite}, {"suite hash", p.SuiteHash},
		{"targets", targets(p.Config.Targets)}, {"queue policy", policy}, {"at once", Plural(p.Config.Slots(), "tracked request")},
		{"size class", class}, {"failover", failover(p.Config)}, {"attempts", fmt.Sprintf("%d for a failing job", p.Config.Fails())},
		{"artifacts", source(p.Config.Artifacts.Provider, p.Config.Artifacts.Parameters)},
	}
	pairs = append(pairs, sourceFields(p, v)...)
	for _, s := range p.Config.BenchmarkSets {
		text := fmt.Sprintf("%s in pool %s", Plural(len(s.Benchmarks), "benchmark"), s.Pool)
		if len(s.Targets) > 0 {
			text += " for " + targets(s.Targets)
		}
		pairs = append(pairs, [2]string{"benchmark set " + s.Name, text})
	}
	for _, tag := range slices.Sorted(maps.Keys(p.Config.Artifacts.Tags)) {
		t := p.Config.Artifacts.Tags[tag]
		pairs = append(pairs, [2]string{"artifact " + tag, source(t.Provider, t.Parameters)})
	}
	pairs = append(pairs, [2]string{"created", moment(v.Now, &p.CreatedAt)}, [2]string{"changed", moment(v.Now, &p.UpdatedAt)})
	if err := write(w, "project "+p.Name+"\n"); err != nil {
		return err
	}
	return Fields(w, pairs...)
}

func failover(c bench.ProjectConfig) string {
	if c.Failover() == 0 {
		return "never: waiting jobs stay at a pool without a live collector"
	}
	return "after " + Duration(c.Failover()) + " without a live collector"
}

func source(provider string, parameters map[string]string) string {
	text := provider
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		text += fmt.Sprintf(" %s=%s", name, parameters[name])
	}
	return text
}

// Applied writes what applying a project changed or would change.
func Applied(w io.Writer, a apiclient.Applied) error {
	var b strings.Builder
	switch {
	case !a.Changed:
		fmt.Fprintf(&b, "project %s: nothing to change\n", a.Project.Name)
	case a.DryRun:
		fmt.Fprintf(&b, "project %s would change (dry run, nothing was applied):\n", a.Project.Name)
	default:
		fmt.Fprintf(&b, "project %s applied:\n", a.Project.Name)
	}
	for _, change := range a.Changes {
		b.WriteString("  " + Printable(change) + "\n")
	}
	return write(w, b.String())
}

// Collectors writes a list of collectors.
func Collectors(w io.Writer, list []apiclient.Collector, v View) error {
	if len(list) == 0 {
		return write(w, "There are no collectors; start one with 'benchloom up' or 'benchloom collector'.\n")
	}
	t := NewTable(Column{Heading: "collector"}, Column{Heading: "state"}, Column{Heading: "target"}, Column{Heading: "class", Right: true},
		Column{Heading: "pool"}, Column{Heading: "run"}, Column{Heading: "last seen"}, Column{Heading: "version"}, Column{Heading: "remarks", Flex: true})
	for _, c := range list {
		t.Row(c.Name, words(c.State), string(c.Target), strconv.Itoa(int(c.SizeClass)), c.Pool, string(c.CurrentRun), Ago(v.Now, c.LastHeartbeat), c.Version, remarks(c, v.Now))
	}
	return t.Write(w, v.Width)
}

// canary describes a canary: its outcome and the request that shows more.
func canary(k apiclient.Canary) string {
	text := cmp.Or(string(k.Outcome), "in progress")
	if k.Message != "" {
		text += ": " + k.Message
	}
	if k.Request != "" {
		text += " (request " + string(k.Request) + ")"
	}
	return text
}

func remarks(c apiclient.Collector, now time.Time) string {
	var list []string
	if c.Host != "" {
		list = append(list, "slot of "+c.Host)
	}
	switch {
	case c.SetAsideAt != nil:
		list = append(list, "set aside: "+c.DisturbedBy)
	case c.DisturbedBy != "":
		list = append(list, "disturbed: "+c.DisturbedBy)
	}
	if k := c.LastCanary; k != nil && k.EndedAt != nil {
		list = append(list, "canary "+string(k.Outcome)+" "+Ago(now, *k.EndedAt))
	}
	if c.CoLocated {
		list = append(list, "co-located")
	}
	if c.MachineType != "" && c.MachineType != "hw" {
		list = append(list, c.MachineType)
	}
	if c.MachineGroup != "" {
		list = append(list, "group "+c.MachineGroup)
	}
	if len(c.Devices) > 0 {
		list = append(list, strings.Join(c.Devices, " "))
	}
	for _, u := range c.Unenforced {
		list = append(list, "no "+u.Name+" limit")
	}
	if c.WantedVersion != "" && c.WantedVersion != c.Version {
		list = append(list, "wanted: "+c.WantedVersion)
	}
	return strings.Join(list, ", ")
}

// Collector writes one collector with the facts of its machine.
func Collector(w io.Writer, c apiclient.Collector, v View) error {
	coLocated := ""
	if c.CoLocated {
		coLocated = "yes: its results are compared only with other co-located ones"
	}
	pairs := [][2]string{
		{"state", words(c.State)}, {"target", string(c.Target)}, {"size class", strconv.Itoa(int(c.SizeClass))}, {"pool", c.Pool},
		{"run", string(c.CurrentRun)}, {"co-located", coLocated}, {"hardware", c.HardwareID}, {"version", c.Version}, {"epoch", strconv.FormatInt(c.Epoch, 10)},
		{"registered", moment(v.Now, &c.RegisteredAt)}, {"last seen", moment(v.Now, &c.LastHeartbeat)},
	}
	switch {
	case c.Stuck:
		pairs = append(pairs, [2]string{"set aside", fmt.Sprintf("%s: %s; until it is started anew", moment(v.Now, c.SetAsideAt), c.DisturbedBy)})
	case c.SetAsideAt != nil:
		until := "its machine is quiet"
		if c.CanaryFailed {
			until = "a canary passes"
		}
		pairs = append(pairs, [2]string{"set aside", fmt.Sprintf("%s: %s; until %s, or 'benchloom collector activate %s'", moment(v.Now, c.SetAsideAt), c.DisturbedBy, until, c.Name)})
	case c.DisturbedBy != "":
		pairs = append(pairs, [2]string{"disturbed", c.DisturbedBy + "; 'benchloom doctor' on its machine shows the causes"})
	}
	if k := c.LastCanary; k != nil {
		pairs = append(pairs, [2]string{"last canary", moment(v.Now, cmp.Or(k.EndedAt, &k.CreatedAt)) + ": " + canary(*k)})
	}
	pairs = append(pairs, machine(c)...)
	if c.WantedVersion != "" && c.WantedVersion != c.Version {
		pairs = append(pairs, [2]string{"wanted version", c.WantedVersion})
	}
	if len(c.BenchmarkSets) > 0 {
		pairs = append(pairs, [2]string{"benchmark sets", strings.Join(c.BenchmarkSets, ", ")})
	}
	for _, label := range slices.Sorted(maps.Keys(c.Labels)) {
		pairs = append(pairs, [2]string{"label " + label, c.Labels[label]})
	}
	for _, u := range c.Unenforced {
		pairs = append(pairs, [2]string{"not enforced", u.Name + ": " + u.Reason})
	}
	var facts map[string]any
	if len(c.Facts) > 0 && json.Unmarshal(c.Facts, &facts) == nil {
		for _, name := range slices.Sorted(maps.Keys(facts)) {
			text, err := json.Marshal(facts[name])
			if err != nil {
				return fmt.Errorf("writing the facts of collector %s: %w", c.Name, err)
			}
			pairs = append(pairs, [2]string{words(name), strings.Trim(string(text), `"`)})
		}
	}
	if err := write(w, "collector "+c.Name+"\n"); err != nil {
		return err
	}
	return Fields(w, pairs...)
}

// TestCases writes the test cases of a selection.
func TestCases(w io.Writer, plans []suite.JobPlan, v View) error {
	t := NewTable(Column{Heading: "benchmark"}, Column{Heading: "profile"}, Column{Heading: "scenario"}, Column{Heading: "backend"},
		Column{Heading: "kind"}, Column{Heading: "target"}, Column{Heading: "class", Right: true})
	count := 0
	for _, p := range plans {
		for _, tc := range p.TestCases {
			count++
			t.Row(tc.Benchmark, tc.Profile, tc.Scenario, tc.Backend, string(p.Kind), string(tc.Target), "≥"+strconv.Itoa(int(p.MinSize)))
		}
	}
	if err := t.Write(w, v.Width); err != nil {
		return err
	}
	return write(w, fmt.Sprintf("%s in %s\n", Plural(count, "test case"), Plural(len(plans), "job")))
}

// SuiteReport writes the problems of a suite, one per line as compilers do, and the
// sizes of its sets.
func SuiteReport(w io.Writer, r suite.Report, v View) error {
	var b strings.Builder
	for _, p := range r.Problems {
		b.WriteString(Printable(p.String()) + "\n")
	}
	if r.OK() {
		fmt.Fprintf(&b, "suite %s is valid; hash %s\n", r.Name, r.Hash)
	}
	if err := write(w, b.String()); err != nil || len(r.Sizes) == 0 {
		return err
	}
	t := NewTable(Column{Heading: "set"}, Column{Heading: "jobs", Right: true}, Column{Heading: "test cases", Right: true})
	for _, s := range r.Sizes {
		name := s.Set
		if name == "" {
			name = "(without --set)"
		}
		t.Row(name, strconv.Itoa(s.Jobs), strconv.Itoa(s.TestCases))
	}
	return t.Write(w, v.Width)
}
