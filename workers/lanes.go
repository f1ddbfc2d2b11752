package workers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/machinegate"
)

// lanes are the task queues that a slot polls, each with a separate SDK worker:
// a slot shared by two workers would be held by the one that polls, and the
// other queue would not be polled.
//
// The gate decides which worker may poll. A worker whose poll must end is
// stopped and replaced: the server ends the poll and loses no task that it has
// already sent (frontend.enableCancelWorkerPollsOnShutdown, and a stop timeout
// above 0).
type lanes struct {
	slot     string
	gate     *Gate
	temporal client.Client
	jobs     jobs
	log      *slog.Logger

	ctx     context.Context //nolint:containedctx // the life of all workers, from open to stop
	stop    context.CancelFunc
	queues  map[string]context.CancelFunc
	running sync.WaitGroup
}

// jobs runs the admitted tasks of a poll; *collection.Collector implements it.
// Each lane calls Register once, before its worker starts, under no lock. It
// must not be nil.
type jobs interface {
	Register(r collection.Registry, admit collection.Admit)
}

// openLanes returns lanes that poll nothing yet; see serve.
func openLanes(slot string, gate *Gate, temporal client.Client, jobs jobs, log *slog.Logger) *lanes {
	ctx, stop := context.WithCancel(context.Background())
	return &lanes{slot: slot, gate: gate, temporal: temporal, jobs: jobs, log: log, ctx: ctx, stop: stop, queues: map[string]context.CancelFunc{}}
}

// serve polls these queues from now on. A queue that is no longer among them is
// left once its job has ended.
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

// close ends all workers and the running job. The machine no longer waits for
// tasks of these queues.
func (l *lanes) close() {
	l.stop()
	l.gate.serve(l.slot, nil)
	l.running.Wait()
}

// workerPause is the time after which a worker that could not start, or was ended by an
// error, is replaced.
const workerPause = 5 * time.Second

// poll polls one queue until it must be left. While Temporal or its namespace is away, it
// waits, however long: other slots of the process may be measuring.
func (l *lanes) poll(leaving context.Context, lane machinegate.Lane) {
	for leaving.Err() == nil {
		p := l.gate.newPoll(lane)
		fatal := make(chan error, 1)
		w, err := l.worker(p, fatal)
		if err == nil {
			err = w.Start()
		}
		if err != nil {
			p.forget()
			l.rest(leaving, lane, err)
			continue
		}
		end := func() {
			w.Stop()
			p.forget()
		}
		select {
		case <-p.closed:
			// The next one is ready when the machine is free again, however
			// long the server takes to end this one's poll.
			l.running.Go(end)
		case err := <-fatal:
			end()
			l.rest(leaving, lane, err)
		case <-leaving.Done():
			p.shut(l.ctx)
			end()
		}
	}
}

// rest waits before a worker that cannot poll is replaced.
func (l *lanes) rest(leaving context.Context, lane machinegate.Lane, why error) {
	if leaving.Err() != nil {
		return
	}
	l.log.WarnContext(leaving, "cannot poll a task queue, retrying", "task_queue", lane.Queue, "error", why)
	select {
	case <-leaving.Done():
	case <-time.After(workerPause):
	}
}

func (l *lanes) worker(p *poll, fatal chan<- error) (worker.Worker, error) {
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
		// Heartbeats carry cancellation: they must not be delayed.
		MaxHeartbeatThrottleInterval:     2 * time.Second,
		DefaultHeartbeatThrottleInterval: 2 * time.Second,
		DisableRegistrationAliasing:      true,
		OnFatalError:                     func(err error) { fatal <- err }, // once
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
