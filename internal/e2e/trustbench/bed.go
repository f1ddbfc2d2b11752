package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/up"
)

// openBed starts the service on the record that earlier pieces left, with the project of the library.
//
// The machine does other work by configuration (--co-located), so each iteration is measured once and keeps its mark. On a
// machine without that setting a marked iteration is repeated until it is quiet, and what the marks miss or what they tell
// falsely could not be counted.
func openBed(ctx context.Context, programs livestack.Programs, dir string) (_ *bed, err error) {
	if err := programs.Find(); err != nil {
		return nil, err
	}
	library, err := openLibrary(ctx, filepath.Join(dir, "library"))
	if err != nil {
		return nil, err
	}
	suiteDir := filepath.Join(dir, "suite")
	if _, err := os.Stat(filepath.Join(suiteDir, suite.FileName)); err != nil {
		out, err := exec.CommandContext(ctx, programs.Benchloom, "suite", "init", "--go", library.dir, "--out", suiteDir).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("writing a suite for the library: %w: %s", err, out)
		}
	}
	cores, err := up.AvailableCores()
	if err != nil {
		return nil, err
	}
	layout, err := up.Plan(cores, "", false)
	if err != nil {
		return nil, err
	}
	stackDir := filepath.Join(dir, "stack")
	if err := os.MkdirAll(stackDir, 0o755); err != nil {
		return nil, err
	}
	b := &bed{library: library, cpus: layout.Slots[0].CPUs}
	if b.stack, err = livestack.Continue(ctx, programs, stackDir, "--co-located"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close(context.WithoutCancel(ctx)))
		}
	}()
	info, err := b.stack.API.Info(ctx)
	if err != nil {
		return nil, err
	}
	b.version = info.Version
	if b.record, err = pgx.Connect(ctx, b.stack.Up.Addresses[up.AddressDatabase]); err != nil {
		return nil, fmt.Errorf("opening the record: %w", err)
	}
	if err := b.apply(ctx, suiteDir); err != nil {
		return nil, err
	}
	return b, b.begin(ctx)
}

func (b *bed) close(ctx context.Context) error {
	if b.record != nil {
		b.record.Close(ctx)
	}
	return b.stack.End()
}

func (b *bed) apply(ctx context.Context, suiteDir string) error {
	bundle, err := suite.Pack(suiteDir)
	if err != nil {
		return err
	}
	if _, err := b.stack.API.PutSuite(ctx, bundle.Hash, bundle.Archive); err != nil {
		return err
	}
	_, err = b.stack.API.ApplyProject(ctx, apiclient.Project{Name: project, SuiteHash: bundle.Hash}, false)
	return err
}

// begin cancels the request that an interrupted trial left, and measures a first release, with which the next one is compared.
func (b *bed) begin(ctx context.Context) error {
	begun, err := b.cancelOpen(ctx)
	if err != nil || begun {
		return err
	}
	version, err := b.library.release(ctx)
	if err != nil {
		return err
	}
	_, err = b.measure(ctx, apiclient.NewRequest{Project: project, Type: bench.Release, Tag: version})
	return err
}

// cancelOpen cancels open requests and waits for their end. It reports whether a release was measured before.
func (b *bed) cancelOpen(ctx context.Context) (begun bool, err error) {
	for {
		list, err := b.stack.API.Requests(ctx, apiclient.RequestQuery{Project: project, Limit: 200})
		if err != nil {
			return false, err
		}
		open := 0
		for _, r := range list.Requests {
			if r.Status == bench.Completed {
				begun = begun || r.Type == bench.Release && r.Outcome == bench.Success
				continue
			}
			open++
			act := apiclient.Act{Reason: "its trial was interrupted", IdempotencyKey: "interrupted " + string(r.ID)}
			if _, err := b.stack.API.CancelRequest(ctx, string(r.ID), act); err != nil {
				return false, err
			}
		}
		if open == 0 {
			return begun, nil
		}
		wait(ctx, pollEvery)
	}
}
