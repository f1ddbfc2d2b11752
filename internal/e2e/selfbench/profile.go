package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/apiclient"
	readings "github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/up"
)

// profilePlan sets what the part profile measures.
type profilePlan struct {
	pairs int           // of a CPU loop with an agent beside it and without
	loops int           // its rounds
	alone time.Duration // for which an agent's own cost is measured
}

// mostProfilePairs is fixed: with more and more pairs, any interval would become narrow enough.
const mostProfilePairs = 200

// profileCommand makes this program run agents as a collector does, see [runAgents].
const profileCommand = "profile"

const profileCostName = "Profile/of=agent"

func profileName(program string) string { return "Profile/beside=" + program }

// unitHigh is the upper end of the 95 % interval of a median difference.
const unitHigh = "high-%"

// agents tells the program that runs agents what to do.
type agents struct {
	API   string
	CPUs  measure.CPUList
	Group readings.Group
}

// agentsReady is the line that tells that the program has started: what that costs is no cost of an agent, which a collector that runs
// already begins.
const agentsReady = "ready"

// runAgents writes [agentsReady] and reads lines from in: after "on" an agent with all default series runs beside a measured command,
// "off" ends it and is answered by a line. It keeps off the CPUs of the command and sends what it records.
func runAgents(ctx context.Context, text string, in io.Reader, out io.Writer) error {
	var a agents
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return fmt.Errorf("reading what agents are told: %w", err)
	}
	if _, err := measure.Avoid(a.CPUs); err != nil {
		return err
	}
	api, err := apiclient.New(a.API, "", nil)
	if err != nil {
		return err
	}
	collectors := func() (job, machines []profiler.Collector) {
		reader := readings.NewReader(readings.Config{Root: "/", CPUs: a.CPUs, Now: time.Now, Elsewhere: true, KeepOpen: true})
		return profiler.JobCollectors(readings.NewGroupReader(a.Group)), profiler.MachineCollectors(reader, readings.NewThermometer("/"))
	}
	var agent *profiler.Agent
	var meter *profiler.Meter
	if _, err := fmt.Fprintln(out, agentsReady); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if lines.Text() == "on" {
			config := profiler.Config{
				Settings: profiler.Settings{Enabled: true, SystemMetrics: true, Timings: true}, Attempt: "selfbench", Host: "selfbench",
				Lock: alone{}, Sender: uploads{api}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Alarm: profiler.NewAlarm,
			}
			config.Job, config.Machine = collectors()
			config.Machine = append(config.Machine, profiler.NewGPUs(profiler.NvidiaSMI, time.Now))
			if agent, err = profiler.New(config); err != nil {
				return err
			}
			agent.Start(ctx)
			job, machines := collectors()
			meter = profiler.NewMeter(ctx, job, machines, time.Now)
			if err := agent.UpdateBatch(1); err != nil {
				return err
			}
			meter.Begin(profiler.Command{Batch: 1})
		} else if agent != nil {
			meter.End()
			sum, _ := meter.Close()
			totals := agent.End()
			fmt.Fprintln(out, totals.Sent, len(sum.Series))
		}
	}
	return lines.Err()
}

// alone is the lock of the only agent of a machine.
type alone struct{}

func (alone) TryLock() (bool, error) { return true, nil }
func (alone) Unlock() error          { return nil }

type uploads struct{ api *apiclient.Client }

func (u uploads) Send(ctx context.Context, of profiler.Upload) error {
	return u.api.SendProfile(ctx, "selfbench", of)
}

// recorder is a running program with agents, and the server that takes what they send.
type recorder struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	server  *http.Server
}

func startRecorder(ctx context.Context, self string, a agents) (*recorder, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &recorder{server: &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set(apiclient.HeaderAPI, "1")
	})}}
	go func() { _ = r.server.Serve(listener) }() // ends with Close
	a.API = "http://" + listener.Addr().String()
	text, err := json.Marshal(a)
	if err != nil {
		return nil, errors.Join(err, r.server.Close())
	}
	r.command = exec.CommandContext(ctx, self, profileCommand, string(text))
	r.command.Stderr = os.Stderr
	if r.in, err = r.command.StdinPipe(); err == nil {
		var out io.Reader
		if out, err = r.command.StdoutPipe(); err == nil {
			r.out = bufio.NewScanner(out)
			err = r.command.Start()
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.server.Close())
	}
	if !r.out.Scan() || r.out.Text() != agentsReady {
		return nil, fmt.Errorf("the program with agents has not started: %w", errors.Join(r.out.Err(), r.close()))
	}
	return r, nil
}

func (r *recorder) begin() error {
	_, err := io.WriteString(r.in, "on\n")
	return err
}

// end ends the present agent. It fails if that has recorded nothing.
func (r *recorder) end() error {
	if _, err := io.WriteString(r.in, "off\n"); err != nil {
		return err
	}
	var sent, series int
	if !r.out.Scan() {
		return fmt.Errorf("the program with agents has ended: %w", errors.Join(io.ErrUnexpectedEOF, r.out.Err()))
	}
	if _, err := fmt.Sscan(r.out.Text(), &sent, &series); err != nil || sent == 0 || series == 0 {
		return fmt.Errorf("the agent has recorded nothing: %q", r.out.Text())
	}
	return nil
}

func (r *recorder) close() error {
	return errors.Join(r.in.Close(), r.command.Wait(), r.server.Close())
}

// measureProfile measures an agent's own cost, and what it does to a command beside it: the same fixed work with an agent and without,
// in turns.
func measureProfile(ctx context.Context, plan profilePlan, report *report) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "benchloom-selfbench-")
	if err != nil {
		return fmt.Errorf("making a work directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cores, err := up.AvailableCores()
	if err != nil {
		return err
	}
	layout, err := up.Plan(cores, "", false)
	if err != nil {
		return err
	}
	cpus := layout.Slots[0].CPUs
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{
		Name: fmt.Sprintf("selfbench-%d", os.Getpid()), WorkDir: filepath.Join(dir, "slot"), CPUs: cpus, Isolation: measure.Isolation{Off: true},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sandbox.Close()) }()
	groups := sandbox.Groups()
	r, err := startRecorder(ctx, self, agents{CPUs: cpus, Group: readings.Group{
		Unified: groups["unified"], CPUAcct: groups["cpuacct"], Memory: groups["memory"], BlockIO: groups["blkio"],
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	cost, err := r.cost(ctx, plan.alone)
	if err != nil {
		return err
	}
	if err := report.add(cost); err != nil {
		return err
	}
	without, with := make([]time.Duration, plan.pairs), make([]time.Duration, plan.pairs)
	random := rand.New(rand.NewPCG(5, 6))
	for i := range plan.pairs {
		turns := []bool{false, true}
		if random.IntN(2) == 1 {
			slices.Reverse(turns)
		}
		for _, beside := range turns {
			into := without
			if beside {
				into = with
				if err := r.begin(); err != nil {
					return err
				}
			}
			c, err := recorded(ctx, sandbox, []string{self, loopCommand, strconv.Itoa(plan.loops)})
			if err != nil {
				return err
			}
			into[i] = c.wall
			if beside {
				if err := r.end(); err != nil {
					return err
				}
			}
		}
	}
	return report.add(profileFigure(profileName(loopProgram), without, with))
}

// cost is the CPU time of an agent that runs for some time, its children included, and the memory that it adds to its program.
func (r *recorder) cost(ctx context.Context, during time.Duration) (figure, error) {
	const agent = "agent"
	pids := map[string]int{agent: r.command.Process.Pid}
	before, err := usageNow(pids)
	if err != nil {
		return figure{}, err
	}
	begin := time.Now()
	if err := r.begin(); err != nil {
		return figure{}, err
	}
	select {
	case <-time.After(during):
	case <-ctx.Done():
		return figure{}, ctx.Err()
	}
	after, err := usageNow(pids)
	if err != nil {
		return figure{}, err
	}
	took := time.Since(begin)
	peak, err := statusField(pids[agent], "VmHWM:")
	if err != nil {
		return figure{}, err
	}
	return figure{profileCostName, 1, []benchfmt.Value{
		{Value: rounded((after[agent].cpu-before[agent].cpu).Seconds()/took.Seconds(), 6), Unit: unitCPU},
		{Value: float64(peak - before[agent].rss), Unit: unitGrowth},
	}}, r.end()
}

// profileFigure compares two series of wall times: the median of the differences within pairs with its 95 % interval, in per cent of
// the median without an agent.
func profileFigure(name string, without, with []time.Duration) figure {
	var bare, beside, differences []float64
	for i := range without {
		a, b := without[i].Seconds(), with[i].Seconds()
		bare, beside, differences = append(bare, a), append(beside, b), append(differences, b-a)
	}
	base := median(bare)
	percent := func(seconds float64) float64 { return rounded(100*seconds/base, 3) }
	low, high := medianInterval(differences)
	return figure{name, len(without), []benchfmt.Value{
		{Value: rounded(base, 6), Unit: "without-sec"}, {Value: rounded(median(beside), 6), Unit: "with-sec"},
		{Value: percent(median(differences)), Unit: unitPercent}, {Value: percent(low), Unit: "low-%"}, {Value: percent(high), Unit: unitHigh},
	}}
}
