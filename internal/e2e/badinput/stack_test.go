package badinput_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/up"
)

const (
	patience = 5 * time.Minute // these machines are shared
	look     = 50 * time.Millisecond
)

// process is a process that a test has started and stops by its ID.
type process struct {
	command *exec.Cmd
	exited  chan struct{}
	err     error
}

func start(log string, environ []string, argv ...string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.Command(path, argv[1:]...), exited: make(chan struct{})}
	p.command.Env, p.command.Dir = environ, filepath.Dir(log)
	p.command.Stdout, p.command.Stderr = out, out
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.exited)
		p.err = p.command.Wait()
	}()
	return p, nil
}

// stop asks the process to stop, and kills it if it does not.
func (p *process) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.exited:
		return p.err
	case <-time.After(patience):
		_ = p.command.Process.Kill()
		<-p.exited
		return fmt.Errorf("process %d did not stop within %s", p.command.Process.Pid, patience)
	}
}

// stack is a running `benchloom up`.
type stack struct {
	dir       string
	process   *process
	addresses map[string]string
	admin     string // token
	transport *http.Transport
	api       *apiclient.Client
}

// startStack starts the service on a state directory and waits until it is ready. Ports
// are free ones unless args, which come last, set others.
func startStack(program, dir string, environ, args []string) (*stack, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	argv := append([]string{program, "up", "--state-dir", dir, "--api-port", "0", "--metrics-port", "0", "--temporal-port", "0", "--temporal-ui-port", "0"}, args...)
	p, err := start(filepath.Join(dir, "up.log"), environ, argv...)
	if err != nil {
		return nil, err
	}
	s := &stack{dir: dir, process: p}
	err = await(func() (bool, error) {
		select {
		case <-p.exited:
			text, _ := os.ReadFile(filepath.Join(dir, "up.log"))
			return false, fmt.Errorf("the stack ended: %w\n%s", p.err, text)
		default:
		}
		running, err := devstack.ReadUp(dir)
		s.addresses = running.Addresses
		return err == nil, nil
	})
	if err == nil {
		s.admin, err = devstack.ReadToken(dir, up.TokenUser)
	}
	if err == nil {
		// No connection outlives its exchange: its goroutines would leak.
		s.transport = &http.Transport{DisableKeepAlives: true}
		s.api, err = apiclient.New(s.addresses[up.AddressAPI], s.admin, &http.Client{Transport: s.transport, Timeout: patience})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a stack on %s: %w", dir, err), p.stop())
	}
	return s, nil
}

func (s *stack) stop() error {
	if err := s.process.stop(); err != nil {
		return fmt.Errorf("stopping the stack on %s: %w", s.dir, err)
	}
	return nil
}

// awaitCollector waits until a collector takes jobs.
func (s *stack) awaitCollector(ctx context.Context, name string, p *process) error {
	return await(func() (bool, error) {
		select {
		case <-p.exited:
			return false, fmt.Errorf("collector %s ended: %w", name, p.err)
		default:
		}
		list, err := s.api.Collectors(ctx)
		if err != nil {
			return false, err
		}
		for _, c := range list {
			if c.Name == name {
				return true, nil
			}
		}
		return false, nil
	})
}

// await polls a condition until it is met, fails, or patience runs out.
func await(so func() (bool, error)) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		if yes, err := so(); yes || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-late.C:
			return fmt.Errorf("not met after %s", patience)
		}
	}
}
