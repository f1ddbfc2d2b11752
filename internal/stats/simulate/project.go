package simulate

import (
	"fmt"
	"math"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// metric is one of the metrics of each test case.
type metric struct {
	name     string
	unit     string
	deciding bool
	delta    float64
	spread   float64 // typical coefficient of variation within a session
	least    float64 // least change that the former rule calls significant; 0: its default
}

// metrics returns five metrics that decide and three that explain.
func metrics() []metric {
	const ofTimes = 0.02
	all := []metric{
		{name: string(bench.Instructions), spread: 0.001},
		{name: string(bench.WallTime), unit: "sec", spread: 0.01, least: ofTimes},
		{name: string(bench.CPUTime), unit: "sec", spread: 0.01, least: ofTimes},
		{name: string(bench.MaxRSS), unit: "B", spread: 0.003},
		{name: "time/op", unit: "sec/op", spread: 0.01},
		{name: string(bench.Cycles), spread: 0.01},
		{name: string(bench.BranchMisses), spread: 0.02},
		{name: string(bench.CacheMisses), spread: 0.03},
	}
	for i := range all {
		all[i].deciding = verdict.Deciding(all[i].name)
		all[i].delta = verdict.Delta(all[i].name, false)
	}
	return all
}

const (
	// sessionSize is the number of values of a session: the iterations of a test case in a request.
	sessionSize = 5
	// window is the number of sessions that are kept of a series: the newest, and as many before as detection reads.
	window = 81
	// spreads is the factor by which a series may vary more or less than is typical of its metric.
	spreads = 2
	// every primaryShare-th test case is of a primary benchmark.
	primaryShare = 4
)

// series is one metric of one test case along the commits of a project.
type series struct {
	key      stats.Key
	metric   *metric
	testCase int
	primary  bool
	spread   float64
	phase    int // of a drift, which does not move all series alike
	planted  change
	values   []float64 // of window sessions, as a ring
	history  history
}

// change is a real change of a series.
type change struct {
	commit int     // the first that has it
	factor float64 // 0: there is none
}

// level returns the true value at a commit.
func (s *series) level(commit int) float64 {
	if s.planted.factor != 0 && commit >= s.planted.commit {
		return s.planted.factor
	}
	return 1
}

// session returns the values of a commit's own session, which must be one of the last.
func (s *series) session(commit int) []float64 {
	at := commit % window * sessionSize
	return s.values[at : at+sessionSize : at+sessionSize]
}

// project is a line of commits, each of which is a request: all test cases are measured, and compared with what was
// measured before.
type project struct {
	noise  Noise
	random Random
	series []series // by test case, then metric
	commit int      // the newest, counted from 0
	tau    float64  // from canaries; 0: unknown
	// explaining is set if metrics that explain are measured, too; only the former rule reads them.
	explaining bool
}

func newProject(noise Noise, testCases int, random Random) *project {
	p := &project{noise: noise, random: random, commit: -1}
	all := metrics()
	p.series = make([]series, 0, testCases*len(all))
	values := make([]float64, testCases*len(all)*window*sessionSize)
	for testCase := range testCases {
		name := fmt.Sprintf("benchmark-%03d", testCase)
		for m := range all {
			s := series{metric: &all[m], testCase: testCase, primary: testCase%primaryShare == 0, phase: int(4 * random.Float64())}
			s.key = stats.Key{TestCase: stats.TestCase{Benchmark: name}, Metric: s.metric.name}
			s.spread = s.metric.spread * math.Pow(spreads, 2*random.Float64()-1)
			s.values, values = values[:window*sessionSize], values[window*sessionSize:]
			p.series = append(p.series, s)
		}
	}
	if noise.canaries {
		p.tau = p.measureCanaries()
	}
	return p
}

// runs returns the number of runs that a request asks for.
func (p *project) runs() int { return sessionSize * (p.series[len(p.series)-1].testCase + 1) }

// advance adds a commit and measures it.
func (p *project) advance() {
	p.commit++
	for i := range p.series {
		if s := &p.series[i]; s.metric.deciding || p.explaining {
			p.measure(s, p.commit)
		}
	}
}

// measure draws the values of a commit's own session.
func (p *project) measure(s *series, commit int) {
	values := s.session(commit)
	p.noise.session(p.random, commit+s.phase, values)
	p.scale(s, values, commit)
	if s.metric.deciding {
		s.history.set(commit, values, commit == p.commit)
	}
}

// turns measures a commit in turns with the newest one.
func (p *project) turns(s *series, baseline int, a, b []float64) {
	p.noise.turns(p.random, int(4*p.random.Float64()), a, b)
	p.scale(s, a, baseline)
	p.scale(s, b, p.commit)
}

// scale turns deviations into values of a commit.
func (p *project) scale(s *series, values []float64, commit int) {
	level := s.level(commit)
	for i, deviation := range values {
		values[i] = level * p.noise.value(s.spread*deviation)
	}
}
