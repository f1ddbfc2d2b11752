package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/up"
)

// crowd is a number of collectors that are registered beside the stack's own: they send
// heartbeats as others do, and take no job.
type crowd struct {
	end    context.CancelFunc
	failed chan error // how it ended
}

// mostCrowd bounds a crowd: each of its heartbeats is a call of the API.
const mostCrowd = 1000

// startCrowd registers so many collectors like the stack's first one.
func startCrowd(ctx context.Context, s *livestack.Stack, size int) (*crowd, error) {
	own, err := s.API.Collectors(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing collectors: %w", err)
	}
	if len(own) == 0 {
		return nil, errors.New("the stack has no collector whose like could be registered")
	}
	token, err := devstack.ReadToken(s.State(), up.TokenCollector)
	if err != nil {
		return nil, err
	}
	client, err := apiclient.New(s.Up.Addresses[up.AddressAPI], token, nil)
	if err != nil {
		return nil, err
	}
	like := own[0]
	beats := make(map[string]apiclient.Heartbeat, size)
	interval := time.Second
	for i := range size {
		name := fmt.Sprintf("crowd-%03d", i)
		registered, err := client.RegisterCollector(ctx, apiclient.Registration{
			Name: name, Target: like.Target, SizeClass: like.SizeClass, Pool: like.Pool, MachineID: "selfbench-" + name,
			Version: like.Version, HardwareID: like.HardwareID, Facts: json.RawMessage(`{}`), CoLocated: true,
		})
		if err != nil {
			return nil, fmt.Errorf("registering the collector %s: %w", name, err)
		}
		beats[name] = apiclient.Heartbeat{Epoch: registered.Collector.Epoch}
		interval = time.Duration(registered.HeartbeatSeconds) * time.Second
	}
	ctx, end := context.WithCancel(ctx)
	c := &crowd{end: end, failed: make(chan error, 1)}
	go func() { c.failed <- beat(ctx, client, beats, interval) }()
	return c, nil
}

// beat sends the heartbeats, evenly over each interval, until the context ends.
func beat(ctx context.Context, client *apiclient.Client, beats map[string]apiclient.Heartbeat, interval time.Duration) error {
	if len(beats) == 0 {
		return nil
	}
	next := time.NewTicker(interval / time.Duration(len(beats)))
	defer next.Stop()
	for {
		for name, b := range beats {
			select {
			case <-ctx.Done():
				return nil
			case <-next.C:
			}
			if _, err := client.Heartbeat(ctx, name, b); err != nil && ctx.Err() == nil {
				return fmt.Errorf("sending a heartbeat of %s: %w", name, err)
			}
		}
	}
}

// stop ends the heartbeats, and tells if one failed.
func (c *crowd) stop() error {
	c.end()
	return <-c.failed
}
