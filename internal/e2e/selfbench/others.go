package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/up"
)

// others is a second API and a second orchestrator on a stack's Temporal and Postgres.
type others struct {
	api       *apiclient.Client
	processes []*exec.Cmd
	exited    []chan error
}

func startOthers(ctx context.Context, s *livestack.Stack, program string) (_ *others, err error) {
	o := &others{}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.stop())
		}
	}()
	token := filepath.Join(s.State(), "tokens", up.TokenTemporal)
	address, err := o.start(ctx, s, program, "api", "--temporal-token-file", token, "--listen")
	if err != nil {
		return nil, err
	}
	if _, err := o.start(ctx, s, program, "orchestrator", "--temporal-token-file", token, "--cache-dir", filepath.Join(s.Dir, "others"), "--metrics"); err != nil {
		return nil, err
	}
	user, err := devstack.ReadToken(s.State(), up.TokenUser)
	if err != nil {
		return nil, err
	}
	o.api, err = apiclient.New(address, user, &http.Client{Timeout: 30 * time.Second})
	return o, err
}

// start starts a process whose last flag is its listen address.
func (o *others) start(ctx context.Context, s *livestack.Stack, program string, args ...string) (address string, err error) {
	name := args[0]
	port, err := devstack.FreePort("127.0.0.1")
	if err != nil {
		return "", err
	}
	listen := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	log, err := os.Create(filepath.Join(s.Dir, "other-"+name+".log"))
	if err != nil {
		return "", fmt.Errorf("opening the log of the other %s: %w", name, err)
	}
	defer log.Close()                                         // the process has its own
	command := exec.Command(program, append(args, listen)...) //nolint:noctx // it is stopped by a signal, not killed with the context
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+s.Up.Addresses[up.AddressTemporal], "TEMPORAL_NAMESPACE=benchloom",
		"DATABASE_URL="+s.Up.Addresses[up.AddressDatabase], "GOMEMLIMIT=64MiB")
	if err := command.Start(); err != nil {
		return "", fmt.Errorf("starting the other %s: %w", name, err)
	}
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }()
	o.processes, o.exited = append(o.processes, command), append(o.exited, exited)
	address = "http://" + listen
	ctx, cancel := context.WithTimeout(ctx, livestack.StartBound)
	defer cancel()
	for {
		if err := answers(ctx, address+"/readyz"); err == nil {
			return address, nil
		} else if sleep(ctx, 50*time.Millisecond) != nil {
			return "", fmt.Errorf("the other %s is not ready: %w", name, err)
		}
	}
}

func answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// stop stops both as an operator would.
func (o *others) stop() error {
	var failures []error
	for i, command := range o.processes {
		if err := command.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
			failures = append(failures, fmt.Errorf("stopping %s: %w", command, err))
		}
		select {
		case <-o.exited[i]:
		case <-time.After(livestack.StopBound):
			failures = append(failures, fmt.Errorf("%s did not stop in time and was killed", command), command.Process.Kill())
			<-o.exited[i]
		}
	}
	o.processes, o.exited = nil, nil
	return errors.Join(failures...)
}
