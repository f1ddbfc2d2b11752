package flame_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/flame"
)

func parse(t *testing.T, format flame.Format, text string) *profile.Profile {
	t.Helper()
	p, err := flame.Parse(format, strings.NewReader(text))
	require.NoError(t, err)
	return p
}

func read(t *testing.T, format flame.Format, name string) *profile.Profile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return parse(t, format, string(text))
}

func top(t *testing.T, p *profile.Profile, sampleType string) flame.Table {
	t.Helper()
	table, err := flame.Top(p, sampleType)
	require.NoError(t, err)
	return table
}

func function(t *testing.T, table flame.Table, name string) flame.Function {
	t.Helper()
	for _, f := range table.Functions {
		if f.Name == name {
			return f
		}
	}
	require.Fail(t, "the table has no such function", name)
	return flame.Function{}
}

// The stacks of a Go program that perf recorded by the clock of the CPU, at 499 Hz.
func TestWhatPerfPrintsBecomesAProfile(t *testing.T) {
	t.Parallel()
	p := read(t, flame.PerfScript, "go.perf")
	require.Equal(t, []string{"samples", "cpu-clock"}, flame.Types(p))
	unit, err := flame.Unit(p, "")
	require.NoError(t, err)
	require.Equal(t, "nanoseconds", unit)

	samples := top(t, p, "samples")
	require.Equal(t, int64(16), samples.Sum)
	require.Equal(t, "main.slow", samples.Functions[0].Name)
	clock := top(t, p, "")
	require.Equal(t, "main.slow", clock.Functions[0].Name)
	require.Equal(t, samples.Sum*2004008, clock.Sum, "each sample has the same period")
	require.Equal(t, clock.Functions[0].Self/2004008, samples.Functions[0].Self)
	recursive := function(t, samples, "main.rec")
	require.Less(t, recursive.Total, samples.Sum, "a function that calls itself counts once for a sample")
	require.Positive(t, recursive.Total)
}

func TestPerfMayPrintMoreOrLess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		types []string
		top   string
	}{
		"offsets and a CPU": {"go 1/2 [001]  1.5: 7 cycles:u: \n\t 4a main.f+0x1f (/bin/go)\n", []string{"samples", "cycles"}, "main.f"},
		"no period":         {"go 1 1.5: cycles: \n\t 4a main.f (/bin/go)\n", []string{"samples", "cycles"}, "main.f"},
		"a name with spaces": {"C2 CompilerThre 1/2 1.5: 7 cycles: \n\t 4a std::vector<int, std::allocator<int> >::at(unsigned long) (/lib/a b.so (deleted))\n",
			[]string{"samples", "cycles"}, "std::vector<int, std::allocator<int> >::at(unsigned long)"},
		"no symbol":        {"go 1 1.5: 7 cycles: \n\t 4a [unknown] (/lib/libc.so.6)\n", []string{"samples", "cycles"}, "[libc.so.6]"},
		"no stack":         {"go 1 1.5: 7 cycles: \n\n", []string{"samples", "cycles"}, "[unknown]"},
		"several events":   {"go 1 1.5: 7 cycles: \n\t 4a f (x)\n\ngo 1 1.6: 8 instructions: \n\t 4a f (x)\n", []string{"samples", "cycles", "instructions"}, "f"},
		"no line between":  {"go 1 1.5: 7 cycles: \n\t 4a f (x)\ngo 1 1.6: 8 cycles: \n\t 4a f (x)\n", []string{"samples", "cycles"}, "f"},
		"a comment":        {"# captured on a machine\ngo 1 1.5: 7 cycles: \n\t 4a f (x)\n", []string{"samples", "cycles"}, "f"},
		"mangled by Rust":  {"p 1 1.5: 7 cycles: \n\t 4a _ZN4core3fmt5write17h0123456789abcdefE (x)\n", []string{"samples", "cycles"}, "core::fmt::write"},
		"mangled by C++":   {"p 1 1.5: 7 cycles: \n\t 4a _ZN3foo3barEv (x)\n", []string{"samples", "cycles"}, "foo::bar()"},
		"hash of old Rust": {"p 1 1.5: 7 cycles: \n\t 4a core::fmt::write::h0123456789abcdef (x)\n", []string{"samples", "cycles"}, "core::fmt::write"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := parse(t, flame.PerfScript, c.text)
			require.Equal(t, c.types, flame.Types(p))
			require.Equal(t, c.top, top(t, p, "samples").Functions[0].Name)
		})
	}
}

// Callgrind counted the instructions of a program in C whose main calls mid, slow and rec; mid
// calls slow, and rec itself and mid.
func TestCallgrindsCostsBecomeStacks(t *testing.T) {
	t.Parallel()
	p := read(t, flame.Callgrind, "c.callgrind")
	table := top(t, p, "")
	require.Equal(t, "Ir", table.Type)
	require.Equal(t, int64(578741), table.Sum, "no instruction is lost")
	require.Equal(t, flame.Function{Name: "slow", File: "/src/c.c", Self: 578036, Total: 578036}, table.Functions[0])
	require.InDelta(t, 578741, function(t, table, "main").Total, 20, "rounded down stack by stack")
	require.InDelta(t, 238045, function(t, table, "mid").Total, 20)
	require.InDelta(t, 68088, function(t, table, "rec").Total, 20)
	var folded strings.Builder
	require.NoError(t, flame.WriteFolded(&folded, p, ""))
	require.Contains(t, folded.String(), "main;slow 340006\n")
	require.Contains(t, folded.String(), "main;rec;rec;mid;slow ")
}

// A function whose callers cost little is not lost: its own costs are told without them.
func TestSmallCostsOfCallgrindAreSummedUp(t *testing.T) {
	t.Parallel()
	text := "events: Ir Dr\nfn=main\n1 1000000 3\n"
	for i := range 50 {
		text += fmt.Sprintf("cfn=f%d\ncalls=1 0\n1 10 1\n", i)
	}
	for i := range 50 {
		text += fmt.Sprintf("fn=f%d\n1 4 1\ncfn=leaf\ncalls=1 0\n1 6\n", i)
	}
	text += "fn=leaf\n1 300\n"
	p := parse(t, flame.Callgrind, text)
	table := top(t, p, "")
	require.Equal(t, int64(1000000+200+300), table.Sum)
	require.Equal(t, int64(300), function(t, table, "leaf").Self)
	require.Equal(t, int64(500), function(t, table, flame.CallersLeftOut).Total)
	require.Equal(t, int64(53), top(t, p, "Dr").Sum)
}

// Functions that call each other for ever in the file end nevertheless.
func TestCallsInACircleEnd(t *testing.T) {
	t.Parallel()
	text := "events: Ir\nfn=main\n1 5\ncfn=a\ncalls=1 0\n1 90\nfn=a\n1 50\ncfn=b\ncalls=9 0\n1 80\nfn=b\n1 40\ncfn=a\ncalls=8 0\n1 70\n"
	table := top(t, parse(t, flame.Callgrind, text), "")
	require.Equal(t, int64(95), table.Sum)
	require.Equal(t, int64(50), function(t, table, "a").Self)
	require.Equal(t, int64(40), function(t, table, "b").Self)
}

func TestCachegrindKnowsNoCalls(t *testing.T) {
	t.Parallel()
	p := parse(t, flame.Callgrind, "desc: I1 cache: 32768 B\ncmd: ./c\nevents: Ir I1mr\nfl=/src/c.c\nfn=slow\n2 900 1\n3 90 0\nfn=main\n5 10 2\nsummary: 1000 3\n")
	table := top(t, p, "")
	require.Equal(t, int64(1000), table.Sum)
	require.Equal(t, "slow", table.Functions[0].Name)
	require.Equal(t, int64(990), table.Functions[0].Self)
	require.Equal(t, int64(3), top(t, p, "I1mr").Sum)
}

// A profile of this process, as Go writes it.
func TestGosProfilesAreRead(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&packed, 0))
	p, err := flame.Parse(flame.Pprof, bytes.NewReader(packed.Bytes()))
	require.NoError(t, err)
	require.Equal(t, []string{"goroutine"}, flame.Types(p))
	require.Positive(t, function(t, top(t, p, ""), "testing.tRunner").Total)

	unpacked, err := gzip.NewReader(&packed)
	require.NoError(t, err)
	again, err := flame.Parse(flame.Pprof, unpacked)
	require.NoError(t, err)
	require.Equal(t, top(t, p, ""), top(t, again, ""), "compressed or not")
}

func TestWhatIsNoProfileIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format flame.Format
		text   string
		want   string
	}{
		"no format":            {"trace", "", `format "trace" is not known; use pprof, perf-script, callgrind, folded`},
		"no protocol buffer":   {flame.Pprof, "hello", "not a profile"},
		"cut off":              {flame.Pprof, "\x1f\x8b\x08\x00", "not a profile"},
		"empty":                {flame.PerfScript, "", "it has no samples"},
		"another text":         {flame.PerfScript, "go 1 1.5: 7 cycles: \n\t 4a f (x)\nhello\n", "line 3: neither a sample nor a frame"},
		"a frame alone":        {flame.PerfScript, "\t 4a f (x)\n", "line 1"},
		"a huge period":        {flame.PerfScript, "go 1 1.5: 99999999999999999999 cycles: \n", "is too large"},
		"a long line":          {flame.Folded, strings.Repeat("a", 100_000) + " 1\n", "line 1: it is longer than"},
		"no number":            {flame.Folded, "main;f x\n", `"x" is no number of samples`},
		"below zero":           {flame.Folded, "main;f -1\n", "is no number of samples"},
		"too much":             {flame.Folded, fmt.Sprintf("f %d\nf %[1]d\n", int64(math.MaxInt64)), "too large to be added up"},
		"no events":            {flame.Callgrind, "version: 1\n", "the line 'events:' is missing"},
		"costs of nothing":     {flame.Callgrind, "events: Ir\n1 5\n", "line 2: costs without a function"},
		"an unknown number":    {flame.Callgrind, "events: Ir\nfn=(3)\n", "the name with number 3 was not given before"},
		"a call of nothing":    {flame.Callgrind, "events: Ir\nfn=main\ncalls=1 0\n", "a call without caller or called function"},
		"costs that are words": {flame.Callgrind, "events: Ir\nfn=main\n1 many\n", `"many" is no number of events`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := flame.Parse(c.format, strings.NewReader(c.text))
			require.ErrorIs(t, err, flame.ErrNotAProfile)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A profile that unfolds to more than anybody needs is not read to its end.
func TestAProfileIsBounded(t *testing.T) {
	t.Parallel()
	var member bytes.Buffer // a file may have many: one is packed once, as that takes most of the time
	packed := gzip.NewWriter(&member)
	_, err := packed.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, packed.Close())
	_, err = flame.Parse(flame.Pprof, bytes.NewReader(bytes.Repeat(member.Bytes(), flame.MaxPprof>>20+1)))
	require.ErrorIs(t, err, flame.ErrNotAProfile)
	require.ErrorContains(t, err, "longer than")

	deep := strings.Repeat("f;", 5000) + "f 1\n"
	p := parse(t, flame.Folded, deep)
	require.Len(t, p.Sample[0].Location, flame.MaxDepth)
	long := parse(t, flame.Folded, strings.Repeat("n", 50_000)+" 1\n")
	require.Len(t, long.Function[0].Name, flame.MaxName)
}

func TestAReaderThatFailsIsNoFaultOfTheProfile(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	for _, format := range []flame.Format{flame.PerfScript, flame.Callgrind, flame.Folded} {
		_, err := flame.Parse(format, io.MultiReader(strings.NewReader("\n"), failing{broken}))
		require.ErrorIs(t, err, broken)
		require.NotErrorIs(t, err, flame.ErrNotAProfile, format)
	}
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

const (
	before = "main;parse 50\nmain;check 30\nmain;check;hash 20\n"
	after  = "main;parse 50\nmain;check 30\nmain;check;hash 100\nmain;link 20\n"
)

func TestADifferenceBeginsWithWhatChangedMost(t *testing.T) {
	t.Parallel()
	a, b := parse(t, flame.Folded, before), parse(t, flame.Folded, after)
	d, err := flame.Diff(a, b, "")
	require.NoError(t, err)
	require.Equal(t, int64(100), d.SumA)
	require.Equal(t, int64(200), d.SumB)
	require.Equal(t, "hash", d.Functions[0].Name)
	require.InDelta(t, .2, d.Functions[0].SelfShareA, 1e-9)
	require.InDelta(t, .5, d.Functions[0].SelfShareB, 1e-9)
	for _, f := range d.Functions {
		require.Equal(t, f.Name == "link", f.OnlyInB, f.Name)
		require.False(t, f.OnlyInA)
	}
	same, err := flame.Diff(a, a, "samples")
	require.NoError(t, err)
	for _, f := range same.Functions {
		require.Equal(t, f.SelfShareA, f.SelfShareB)
	}
	_, err = flame.Diff(a, b, "cycles")
	require.ErrorContains(t, err, `no samples of type "cycles"; use samples`)
}

// What one format says, the others say too.
func TestAProfileIsTheSameInEveryForm(t *testing.T) {
	t.Parallel()
	p := read(t, flame.PerfScript, "go.perf")
	var folded bytes.Buffer
	require.NoError(t, flame.WriteFolded(&folded, p, "samples"))
	again := top(t, parse(t, flame.Folded, folded.String()), "")
	for _, f := range top(t, p, "samples").Functions {
		g := function(t, again, f.Name)
		require.Equal(t, [2]int64{f.Self, f.Total}, [2]int64{g.Self, g.Total}, f.Name)
	}

	var packed bytes.Buffer
	require.NoError(t, p.Write(&packed))
	asPprof, err := flame.Parse(flame.Pprof, &packed)
	require.NoError(t, err)
	require.Equal(t, top(t, p, "cpu-clock"), top(t, asPprof, "cpu-clock"))

	var out bytes.Buffer
	require.NoError(t, flame.WriteSpeedscope(&out, p, "go"))
	var s struct {
		Shared   struct{ Frames []struct{ Name string } }
		Profiles []struct {
			Name, Unit string
			EndValue   int64
			Samples    [][]int
			Weights    []int64
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &s))
	require.Len(t, s.Profiles, 2)
	require.Equal(t, "nanoseconds", s.Profiles[1].Unit)
	require.Equal(t, top(t, p, "cpu-clock").Sum, s.Profiles[1].EndValue)
	require.Len(t, s.Profiles[0].Weights, len(s.Profiles[0].Samples))
	for _, stack := range s.Profiles[0].Samples {
		require.NotEqual(t, "main.slow", s.Shared.Frames[stack[0]].Name, "stacks begin with the outermost frame")
	}
}

// drawn returns the boxes of a drawing: what their titles and classes say.
func drawn(t *testing.T, svg string) (titles, classes []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return titles, classes
		}
		require.NoError(t, err, svg)
		start, isStart := token.(xml.StartElement)
		switch {
		case isStart && start.Name.Local == "svg":
			for _, a := range start.Attr {
				if a.Name.Local == "class" && a.Value != "flame" {
					classes = append(classes, a.Value)
				}
			}
		case isStart && start.Name.Local == "title":
			text, err := d.Token()
			require.NoError(t, err)
			titles = append(titles, string(text.(xml.CharData)))
		}
	}
}

func tree(t *testing.T, text string) flame.Tree {
	t.Helper()
	made, err := flame.NewTree(parse(t, flame.Folded, text), "")
	require.NoError(t, err)
	return made
}

func lay(of flame.Tree, at string) flame.Graph { return of.Lay(at, flame.DrawnBoxes) }

// A graph has no more boxes than it may, however many frames are wide enough; what is left stands for the rest.
func TestAGraphIsBounded(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 100 {
		for k := range 5 {
			fmt.Fprintf(&text, "main;f%d;g%d;h;i;j 10\n", i, k)
		}
	}
	made := tree(t, text.String())
	require.Greater(t, len(made.Lay("", flame.DrawnBoxes).Boxes), 1000)
	g := made.Lay("", 0)
	require.LessOrEqual(t, len(g.Boxes), flame.MaxDepth+1)
	require.Equal(t, made.Root.Total, g.Boxes[0].Total)
	last := g.Boxes[len(g.Boxes)-1]
	require.Positive(t, last.Others)
	require.InDelta(t, 1, last.X+last.Width, 1e-9)
}

// What is gone in B can still be named by its address, and has no width of its own.
func TestAFrameThatIsGoneIsStillNamed(t *testing.T) {
	t.Parallel()
	made, err := flame.NewDifference(parse(t, flame.Folded, "main;gone;deeper 5\nmain;kept 5\n"), parse(t, flame.Folded, "main;kept 9\n"), "")
	require.NoError(t, err)
	gone := made.Root.Children[0].Children[0]
	require.Equal(t, "gone", gone.Name)
	g := lay(made, gone.ID)
	require.Equal(t, []string{"all", "main", "gone"}, []string{g.Boxes[0].Name, g.Boxes[1].Name, g.Boxes[2].Name})
	require.Len(t, g.Boxes, 3)
	require.EqualValues(t, 5, g.Boxes[2].BeforeTotal)
}

func TestAFlameGraphShowsEachFrame(t *testing.T) {
	t.Parallel()
	d := flame.Drawing{ID: "f", Title: "all of it", Graph: lay(tree(t, before), ""), Link: func(id string) string { return "?at=" + id + "&q=1" }}
	titles, _ := drawn(t, d.SVG())
	require.Equal(t, []string{
		"all of it",
		"all: 100, 100.0 % of all", "main: 100, 100.0 % of all", "check: 50, 50.0 % of all; itself 30.0 %",
		"hash: 20, 20.0 % of all; itself 20.0 %", "parse: 50, 50.0 % of all; itself 50.0 %",
	}, titles)
	require.Contains(t, d.SVG(), "&amp;q=1", "addresses are escaped")
}

// Zooming in gives a frame the whole width, below its callers, and is an address.
func TestAFlameGraphZoomsIn(t *testing.T) {
	t.Parallel()
	made := tree(t, before)
	d := flame.Drawing{ID: "f", Title: "zoomed"}
	check := made.Root.Children[0].Children[0]
	require.Equal(t, "check", check.Name)
	path := made.Find(check.ID)
	require.Len(t, path, 3)
	boxes := flame.Boxes(path, 0)
	require.Len(t, boxes, 4)
	require.InDelta(t, 1, boxes[2].Width, 1e-9)
	require.InDelta(t, .4, boxes[3].Width, 1e-9, "hash is 20 of 50")
	d.Graph = lay(made, check.ID)
	require.Equal(t, check.ID, d.Graph.At)
	titles, _ := drawn(t, d.SVG())
	require.NotContains(t, strings.Join(titles, "\n"), "parse:", "what is beside it is out of sight")
	d.Graph = lay(made, "nothing")
	require.Empty(t, d.Graph.At)
	titles, _ = drawn(t, d.SVG())
	require.Contains(t, strings.Join(titles, "\n"), "parse:", "an address of another profile shows everything")
	require.Equal(t, check.ID, tree(t, after).Root.Children[0].Children[0].ID, "a frame has the same address in another profile")
}

func TestNarrowFramesAreDrawnTogether(t *testing.T) {
	t.Parallel()
	text := "main;wide 100000\n"
	for i := range 5000 {
		text += fmt.Sprintf("main;f%d 1\n", i)
	}
	d := flame.Drawing{ID: "f", Title: "many", Graph: lay(tree(t, text), "")}
	titles, _ := drawn(t, d.SVG())
	require.Len(t, titles, 5, "the drawing, all, main, wide and the others")
	require.Contains(t, titles[4], "5000 others: 5,000, 4.8 % of all")
}

func TestADifferenceIsColouredByItsSize(t *testing.T) {
	t.Parallel()
	made, err := flame.NewDifference(parse(t, flame.Folded, before), parse(t, flame.Folded, after), "")
	require.NoError(t, err)
	d := flame.Drawing{ID: "f", Title: "changes", Graph: lay(made, "")}
	titles, classes := drawn(t, d.SVG())
	class := map[string]string{}
	for i, title := range titles[1:] {
		name, _, _ := strings.Cut(title, ":")
		class[name] = classes[i]
	}
	require.Equal(t, map[string]string{"all": "same", "main": "same", "check": "more-4", "hash": "more-4", "parse": "less-4", "link": "more-4"}, class)
	require.Contains(t, titles[4], "before: 20, 20.0 %")
}

func TestASearchMarksWhatItFinds(t *testing.T) {
	t.Parallel()
	made := tree(t, before)
	d := flame.Drawing{ID: "f", Title: "search", Graph: lay(made, ""), Search: "HASH"}
	_, classes := drawn(t, d.SVG())
	require.Equal(t, 1, strings.Count(strings.Join(classes, " "), "found"))
	require.Equal(t, int64(20), made.Matched("HASH"))
	require.Equal(t, int64(50), made.Matched("check"), "callees count with their caller, once")
	require.Zero(t, made.Matched("nowhere"))
}

// Names come from programs under test.
func TestNamesAreOnlyText(t *testing.T) {
	t.Parallel()
	name := `</title><script>alert("1")</script>&"'` + "\u202egnp.exe\x00\xff"
	p := parse(t, flame.Folded, name+" 1\n")
	made, err := flame.NewTree(p, "")
	require.NoError(t, err)
	d := flame.Drawing{ID: `f"`, Title: name, Graph: lay(made, ""), Link: func(string) string { return `"><script>` }}
	svg := d.SVG()
	drawn(t, svg)
	page := flame.Page(d, name, top(t, p, ""))
	for _, text := range []string{svg, page} {
		require.NotContains(t, text, "<script")
		require.NotContains(t, text, "\u202e")
	}
}

// A page that stands alone loads nothing.
func TestAPageStandsAlone(t *testing.T) {
	t.Parallel()
	p := parse(t, flame.Folded, before)
	page := flame.Page(flame.Drawing{ID: "f", Title: "go 1.26.0", Graph: lay(tree(t, before), "")}, "CPU time", top(t, p, ""))
	for _, text := range []string{"src=", "href=", "url(", "@import", "<script"} {
		require.NotContains(t, page, text)
	}
	require.Contains(t, page, "<td>50</td><td>50.0 %</td><td>50</td><td>50.0 %</td><td>parse</td>")
}

func TestAmountsAreReadable(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		v    int64
		unit string
	}{
		"1.25 s": {1_250_000_000, "nanoseconds"}, "2.5 ms": {2_500_000, "nanoseconds"}, "12.0 µs": {12_000, "nanoseconds"},
		"3.0 KiB": {3072, "bytes"}, "17 B": {17, "bytes"}, "1.5 MiB": {3 << 19, "bytes"}, "2.00 GiB": {2 << 30, "bytes"},
		"1,234,567": {1_234_567, "count"}, "999": {999, ""}, "12,345 contentions": {12_345, "contentions"}, "-5": {-5, "count"},
	} {
		require.Equal(t, want, flame.Amount(c.v, c.unit))
	}
}

// What perf and callgrind of this machine write, of a program with a slow function.
func TestToolsOfThisMachineFindTheSlowFunction(t *testing.T) {
	t.Parallel()
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		t.Log("gcc is not installed, so nothing was tried")
		return
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.c"), []byte(`
__attribute__((noinline)) int slow(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * (i % 7); return s; }
__attribute__((noinline)) int quick(int n) { int s = 0; for (int i = 0; i < n; i++) s += i ^ s; return s; }
__attribute__((noinline)) int middle(int n) { return slow(n) + quick(n / 100); }
int main() { return middle(20000000) & 1; }
`), 0o600))
	run := func(t *testing.T, name string, args ...string) []byte {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = dir
		var stderr strings.Builder
		c.Stderr = &stderr
		out, err := c.Output()
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			require.NoError(t, err, "%s: %s", name, &stderr)
		}
		return out
	}
	run(t, compiler, "-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", "p", "p.c")
	t.Run("perf", func(t *testing.T) {
		t.Parallel()
		if _, err := exec.LookPath("perf"); err != nil {
			t.Log("perf is not installed, so it was not tried")
			return
		}
		run(t, "perf", "record", "-q", "-F", "999", "-e", "cpu-clock:u", "--call-graph", "fp", "-o", "perf.data", "--", "./p")
		text := run(t, "perf", "script", "-i", "perf.data", "-F", "comm,pid,tid,time,event,ip,sym,dso,period")
		require.Equal(t, "slow", top(t, parse(t, flame.PerfScript, string(text)), "").Functions[0].Name)
	})
	t.Run("callgrind", func(t *testing.T) {
		t.Parallel()
		if _, err := exec.LookPath("valgrind"); err != nil {
			t.Log("valgrind is not installed, so it was not tried")
			return
		}
		run(t, "valgrind", "--tool=callgrind", "--callgrind-out-file=callgrind.out", "./p")
		text, err := os.ReadFile(filepath.Join(dir, "callgrind.out"))
		require.NoError(t, err)
		table := top(t, parse(t, flame.Callgrind, string(text)), "Ir")
		require.Equal(t, "slow", table.Functions[0].Name)
		require.Greater(t, flame.Share(function(t, table, "middle").Total, table.Sum), .9)
		require.Less(t, flame.Share(function(t, table, "middle").Self, table.Sum), .1)
	})
}

func FuzzParse(f *testing.F) {
	for _, format := range flame.Formats() {
		f.Add(string(format), []byte(before))
	}
	for _, name := range []string{"go.perf", "c.callgrind"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		f.Add(string(flame.PerfScript), text)
		f.Add(string(flame.Callgrind), text)
	}
	f.Add(string(flame.Firefox), []byte(threadOfSamply))
	dhat, err := os.ReadFile(filepath.Join("testdata", "c.dhat"))
	require.NoError(f, err)
	f.Add(string(flame.DHAT), dhat)
	var packed bytes.Buffer
	require.NoError(f, pprof.Lookup("goroutine").WriteTo(&packed, 0))
	f.Add(string(flame.Pprof), packed.Bytes())
	f.Fuzz(func(t *testing.T, format string, text []byte) {
		p, err := flame.Parse(flame.Format(format), bytes.NewReader(text))
		if err != nil {
			return
		}
		require.NoError(t, p.CheckValid())
		for _, sampleType := range flame.Types(p)[:1] {
			made, err := flame.NewTree(p, sampleType)
			require.NoError(t, err)
			drawn(t, flame.Drawing{ID: "f", Title: "t", Graph: lay(made, "")}.SVG())
			_, err = flame.Diff(p, p, sampleType)
			require.NoError(t, err)
			require.NoError(t, flame.WriteFolded(io.Discard, p, sampleType))
		}
		require.NoError(t, flame.WriteSpeedscope(io.Discard, p, "t"))
	})
}
