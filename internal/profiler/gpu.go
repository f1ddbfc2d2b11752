package profiler

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// freshGPU is the greatest age of a line of nvidia-smi that is a reading. Each GPU has one every 100 ms, later if the driver is busy.
	freshGPU = time.Second
	// maxGPUs bounds the number of devices.
	maxGPUs = 64
)

// gpuFields are the columns of a line, one line per GPU: "GPU-5a1b…, 12, 15360". Memory is in MiB; see nvidia-smi --help-query-gpu.
var gpuFields = []string{"uuid", "utilization.gpu", "memory.free"}

// GPUs collects what GPUs do, from one nvidia-smi that lives as long as the agent samples. A machine without nvidia-smi has no GPU
// that can be read. A broken nvidia-smi is not started again.
type GPUs struct {
	start  func(context.Context) (io.ReadCloser, error)
	now    func() time.Time
	output io.Closer
	begun  bool
	done   chan struct{} // closed when the output has ended

	mu     sync.Mutex
	latest map[string]gpu // by UUID
	broken error          // until Collect has returned it
	absent string         // why there will be no readings
}

// gpu is the last line of a device. Values not reported are nil.
type gpu struct {
	util, free *float64
	at         time.Time
}

// NewGPUs returns the collector. Start begins a program that prints the lines of nvidia-smi, [NvidiaSMI] outside tests; its error matches
// [exec.ErrNotFound] if there is no such program. Now is the clock.
func NewGPUs(start func(context.Context) (io.ReadCloser, error), now func() time.Time) *GPUs {
	return &GPUs{start: start, now: now, latest: map[string]gpu{}}
}

// Name implements [Collector].
func (g *GPUs) Name() string { return "GPUs" }

// Collect returns the last reading of each GPU, unless it is older than a second. It returns a failure of nvidia-smi once, and then
// gives it as the reason of the absence.
func (g *GPUs) Collect(ctx context.Context) (Collected, error) {
	if !g.begun {
		g.begun = true
		g.begin(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.broken; err != nil {
		g.broken = nil
		return Collected{}, err
	}
	if g.absent != "" {
		return Collected{Absent: map[Metric]string{GPUUtil: g.absent, GPUMemoryFree: g.absent}}, nil
	}
	var c Collected
	now := g.now()
	for _, uuid := range slices.Sorted(maps.Keys(g.latest)) {
		device := g.latest[uuid]
		if now.Sub(device.at) > freshGPU {
			continue
		}
		for metric, value := range map[Metric]*float64{GPUUtil: device.util, GPUMemoryFree: device.free} {
			if value != nil {
				c.Values = append(c.Values, Value{Metric: metric, Device: uuid, Value: *value})
			}
		}
	}
	return c, nil
}

func (g *GPUs) begin(ctx context.Context) {
	output, err := g.start(ctx)
	if errors.Is(err, exec.ErrNotFound) {
		g.fail("this machine has no nvidia-smi", nil)
		return
	}
	if err != nil {
		g.fail("", fmt.Errorf("starting nvidia-smi: %w", err))
		return
	}
	g.output, g.done = output, make(chan struct{})
	go g.follow(ctx, output)
}

// follow reads lines until there are no more.
func (g *GPUs) follow(ctx context.Context, output io.ReadCloser) {
	defer close(g.done)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), noGPU) {
			g.fail("nvidia-smi finds no GPU", nil)
			continue
		}
		if err := g.keep(lines.Text()); err != nil {
			g.fail("", err)
			break
		}
	}
	err := errors.Join(lines.Err(), output.Close())
	if ctx.Err() == nil {
		g.fail("", fmt.Errorf("nvidia-smi ended: %w", cmp.Or(err, io.EOF)))
	}
}

// noGPU is the line printed by nvidia-smi on a machine that has the driver and no device.
const noGPU = "No devices were found"

// keep keeps a line.
func (g *GPUs) keep(line string) error {
	fields := strings.Split(line, ",")
	if len(fields) != len(gpuFields) || !strings.Contains(fields[0], "-") {
		return fmt.Errorf("nvidia-smi printed %.100q instead of %s", line, strings.Join(gpuFields, ", "))
	}
	uuid := strings.TrimSpace(fields[0])
	device := gpu{at: g.now()}
	// A device that does not report a value has text in brackets there, such as "[N/A]".
	if percent, err := strconv.ParseFloat(strings.TrimSpace(fields[1]), 64); err == nil {
		ratio := percent / 100
		device.util = &ratio
	}
	if mebibytes, err := strconv.ParseFloat(strings.TrimSpace(fields[2]), 64); err == nil {
		bytes := mebibytes * (1 << 20)
		device.free = &bytes
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.latest[uuid]; known || len(g.latest) < maxGPUs {
		g.latest[uuid] = device
	}
	return nil
}

// fail ends the readings with the first reason given. An error is one that people should see.
func (g *GPUs) fail(reason string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.absent != "" {
		return
	}
	g.absent, g.broken = reason, err
	if err != nil {
		g.absent = err.Error()
	}
}

// Close ends nvidia-smi.
func (g *GPUs) Close() error {
	if g.output == nil {
		return nil
	}
	g.fail("the agent has ended", nil)
	_ = g.output.Close() // Collect has told its errors
	<-g.done
	return nil
}

// NvidiaSMI starts nvidia-smi. Its output ends with the program; closing it ends the program, and returns the error of a program
// that had already ended by itself.
func NvidiaSMI(ctx context.Context) (io.ReadCloser, error) {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil, err
	}
	return startProgram(ctx, path, "--query-gpu="+strings.Join(gpuFields, ","), "--format=csv,noheader,nounits",
		"-lms", strconv.FormatInt(Interval.Milliseconds(), 10))
}

// program is a running program whose output is read.
type program struct {
	io.Reader
	command *exec.Cmd
	cancel  context.CancelFunc
	errors  *prefix
	once    sync.Once
	ended   error
}

// programDelay bounds how long a killed program may keep its output open.
const programDelay = 100 * time.Millisecond

func startProgram(ctx context.Context, path string, arguments ...string) (*program, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &program{command: exec.CommandContext(ctx, path, arguments...), cancel: cancel, errors: &prefix{room: 500}}
	p.command.Stderr = p.errors
	p.command.WaitDelay = programDelay
	output, err := p.command.StdoutPipe()
	if err == nil {
		err = p.command.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	p.Reader = output
	return p, nil
}

// Close ends the program.
func (p *program) Close() error {
	p.once.Do(func() {
		p.cancel()
		err := p.command.Wait()
		var exit *exec.ExitError
		if errors.As(err, &exit) && !exit.Exited() || errors.Is(err, context.Canceled) {
			err = nil // it was killed, or had just ended
		}
		if err != nil {
			p.ended = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(p.errors.text)))
		}
	})
	return p.ended
}

// prefix keeps the first bytes written to it.
type prefix struct {
	text []byte
	room int
}

func (p *prefix) Write(b []byte) (int, error) {
	n := min(len(b), p.room)
	p.text, p.room = append(p.text, b[:n]...), p.room-n
	return len(b), nil
}
