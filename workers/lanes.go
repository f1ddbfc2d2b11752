package workers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/machinegate"
)

// lanes are the task queues that a slot polls, each with an SDK worker of its own:
// one slot shared by two workers would be held by whichever polls, and leave the
// other queue blind.
//
// The gate says who may poll. A worker whose poll has to end is stopped and
// replaced: the server ends the poll, and loses nothing of what it has sent
// already (frontend.enableCancelWorkerPollsOnShutdown, and a stop timeout above 0).
type lanes struct {
	slot     string
	gate     *Gate
	temporal client.Client
	jobs     jobs
	// failed is told why a worker cannot go on.
	failed func(error)

	ctx     context.Context //nolint:containedctx // the life of all workers, from open to stop
	stop    context.CancelFunc
	queues  map[string]context.CancelFunc
	running sync.WaitGroup
}

// jobs carries out what a poll brings, as far as it is admitted;
// *collection.Collector implements it. Each lane calls Register once, before its
// worker starts, under no lock. It must not be nil.
type jobs interface {
	Register(r collection.Registry, admit collection.Admit)
}

// openLanes polls nothing yet; see serve.
func openLanes(slot string, gate *Gate, temporal client.Client, jobs jobs, failed func(error)) *lanes {
	ctx, stop := context.WithCancel(context.Background())
	return &lanes{slot: slot, gate: gate, temporal: temporal, jobs: jobs, failed: failed, ctx: ctx, stop: stop, queues: map[string]context.CancelFunc{}}
}

// serve polls these queues from now on. One that is not among them any more is
// left when the job that it has brought has ended.
func (l *lanes) serve(queues []string) {
	wanted := make(map[string]bool, len(queues))
	for _, q := range queues {
		wanted[q] = true
	}
	for q, leave := range l.queues {
		if !wanted[q] {
			leave()
			delete(l.queues, q)
		}
	}
	l.gate.serve(l.slot, queues)
	for _, q := range queues {
		if l.queues[q] == nil {
			leaving, leave := context.WithCancel(l.ctx)
			l.queues[q] = leave
			l.running.Go(func() { l.poll(leaving, machinegate.Lane{Slot: l.slot, Queue: q}) })
		}
	}
}

// close ends all workers, and the job that runs. From then on nobody of the machine
// waits for what could come there.
func (l *lanes) close() {
	l.stop()
	l.gate.serve(l.slot, nil)
	l.running.Wait()
}

// poll polls one queue until it is to be left.
func (l *lanes) poll(leaving context.Context, lane machinegate.Lane) {
	for leaving.Err() == nil {
		p := l.gate.newPoll(lane)
		w, err := l.worker(p)
		if err == nil {
			err = w.Start()
		}
		if err != nil {
			p.forget()
			l.failed(fmt.Errorf("starting the collector's worker: %w", err))
			return
		}
		end := func() {
			w.Stop()
			p.forget()
		}
		select {
		case <-p.closed:
			// The next one is there when the machine is free again, however long the
			// server takes to end this one's poll.
			l.running.Go(end)
		case <-leaving.Done():
			p.shut(l.ctx)
			end()
		}
	}
}

func (l *lanes) worker(p *poll) (worker.Worker, error) {
	others, err := worker.NewFixedSizeTuner(worker.FixedSizeTunerOptions{NumWorkflowSlots: 1, NumActivitySlots: 1, NumLocalActivitySlots: 1, NumNexusSlots: 1})
	if err != nil {
		return nil, err
	}
	w := worker.New(l.temporal, p.lane.Queue, worker.Options{
		Identity: l.slot,
		// One slot, reserved before polling: a busy machine holds no task.
		Tuner:                            tuner{WorkerTuner: others, poll: p},
		MaxConcurrentActivityTaskPollers: 1,
		DisableWorkflowWorker:            true,
		WorkerStopTimeout:                shutdownGrace,
		// Cancellation travels with heartbeats: they must not be held back.
		MaxHeartbeatThrottleInterval:     2 * time.Second,
		DefaultHeartbeatThrottleInterval: 2 * time.Second,
		DisableRegistrationAliasing:      true,
		OnFatalError:                     func(err error) { l.failed(fmt.Errorf("the collector's worker failed: %w", err)) },
	})
	l.jobs.Register(w, p.admit)
	return w, nil
}

// tuner gives a worker its poll as the slot of its activities.
type tuner struct {
	worker.WorkerTuner
	poll *poll
}

func (t tuner) GetActivityTaskSlotSupplier() worker.SlotSupplier { return t.poll }
