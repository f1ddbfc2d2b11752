package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/benchloom/benchloom/api"
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
	shared, err := apiclient.New(s.Up.Addresses[up.AddressAPI], token, nil)
	if err != nil {
		return nil, err
	}
	like := own[0]
	members := make([]member, size)
	var interval time.Duration
	for i := range members {
		name := fmt.Sprintf("crowd-%03d", i)
		machine := "selfbench-" + name
		secret, err := api.NewToken(rand.Reader)
		if err != nil {
			return nil, err
		}
		hash := sha256.Sum256([]byte(secret))
		if err := shared.PutOwnToken(ctx, apiclient.OwnToken{Name: name, SecretHash: hex.EncodeToString(hash[:]), Machines: []string{machine}}); err != nil {
			return nil, fmt.Errorf("giving the collector %s a token: %w", name, err)
		}
		m := member{name: name}
		if m.client, err = apiclient.New(s.Up.Addresses[up.AddressAPI], secret, nil); err != nil {
			return nil, err
		}
		registered, err := m.client.RegisterCollector(ctx, apiclient.Registration{
			Name: name, Target: like.Target, SizeClass: like.SizeClass, Pool: like.Pool, MachineID: machine,
			Version: like.Version, HardwareID: like.HardwareID, Facts: json.RawMessage(`{}`), CoLocated: true,
		})
		if err != nil {
			return nil, fmt.Errorf("registering the collector %s: %w", name, err)
		}
		m.beat.Epoch = registered.Collector.Epoch
		members[i], interval = m, time.Duration(registered.HeartbeatSeconds)*time.Second
	}
	ctx, end := context.WithCancel(ctx)
	c := &crowd{end: end, failed: make(chan error, 1)}
	go func() { c.failed <- sendBeats(ctx, members, interval) }()
	return c, nil
}

// member is one of a crowd.
type member struct {
	name   string
	client *apiclient.Client // with its own token
	beat   apiclient.Heartbeat
}

// sendBeats sends the heartbeats, evenly over each interval, until the context ends.
func sendBeats(ctx context.Context, members []member, interval time.Duration) error {
	if len(members) == 0 {
		return nil
	}
	next := time.NewTicker(interval / time.Duration(len(members)))
	defer next.Stop()
	for {
		for _, m := range members {
			select {
			case <-ctx.Done():
				return nil
			case <-next.C:
			}
			if _, err := m.client.Heartbeat(ctx, m.name, m.beat); err != nil && ctx.Err() == nil {
				return fmt.Errorf("sending a heartbeat of %s: %w", m.name, err)
			}
		}
	}
}

// stop ends the heartbeats, and tells if one failed.
func (c *crowd) stop() error {
	c.end()
	return <-c.failed
}
