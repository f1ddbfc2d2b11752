package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

const plainText = "text/plain; charset=utf-8"

// JobRecord reads jobs with their runs and output. Each method returns
// store.ErrNotFound for an unknown key or ID.
type JobRecord interface {
	Job(ctx context.Context, key bench.JobKey) (bench.Job, error)
	JobRuns(ctx context.Context, key bench.JobKey) ([]bench.Run, error)
	TypicalRecord
	Run(ctx context.Context, id bench.RunID) (bench.Run, error)
	// ReadLog reads at most limit bytes of a run's output from an offset; next is the
	// offset of the rest.
	ReadLog(ctx context.Context, run bench.RunID, from int64, most int) (data []byte, next int64, err error)
	RunDetailRecord
}

type jobHandlers struct {
	*base
	record    JobRecord
	inspector Inspector
}

func (s *jobHandlers) register() {
	s.registerRuns()
	handle(s.base, operation{id: "get-job", method: http.MethodGet, path: "/jobs/{job}", need: toRead, tag: "jobs",
		summary: "Show a job with its runs"}, s.getJob)
	handle(s.base, operation{id: "get-job-log", method: http.MethodGet, path: "/jobs/{job}/log", need: toRead, tag: "jobs", slots: outputSlots, answers: logAnswer,
		summary: "Read the output of one of a job's runs", description: followDescription}, s.getJobLog)
	handle(s.base, operation{id: "get-run-log", method: http.MethodGet, path: "/runs/{run}/log", need: toRead, tag: "jobs", slots: outputSlots, answers: logAnswer,
		summary: "Read the output of a run", description: followDescription}, s.getRunLog)
}

// logAnswer is a piece of a log.
var logAnswer = []documented{{status: http.StatusOK, media: []string{"text/plain"}}}

const followDescription = "A piece of the output as text. To follow it, ask again with from = X-Next-Offset and wait, until X-Complete is true."

type jobPath struct {
	Job string `path:"job" doc:"Key of the job."`
}

func (s *jobHandlers) getJob(ctx context.Context, in *jobPath) (*body[apiclient.JobDetail], error) {
	j, err := s.job(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	stored, err := s.record.JobRuns(ctx, j.Key)
	if err != nil {
		return nil, err
	}
	runs, err := runsOf(stored)
	if err != nil {
		return nil, err
	}
	jobs := []apiclient.Job{jobOf(j)}
	if err := expect(ctx, s.record, []bench.Job{j}, jobs); err != nil {
		return nil, err
	}
	err = explainWaiting(ctx, s.inspector, []bench.Job{j}, runs, jobs)
	return answer(apiclient.JobDetail{Job: jobs[0], Runs: runs}, err)
}

const (
	// maxLogPiece bounds one answer, in bytes.
	maxLogPiece = 256 << 10
	// maxWait bounds the wait for new output, in seconds.
	maxWait = 20
	// lookEvery is the interval of checks for new output meanwhile.
	lookEvery = 500 * time.Millisecond
)

// wanted names a piece of a log, and the time to wait for it in seconds.
type wanted struct {
	from int64
	wait int
}

type logPiece struct {
	ContentType string `header:"Content-Type"`
	Next        string `header:"X-Next-Offset" doc:"Where the next piece begins."`
	Complete    string `header:"X-Complete" doc:"true when nothing will follow."`
	Run         string `header:"X-Run" doc:"The run of this output; absent before the first run."`
	Body        []byte
}

type getJobLog struct {
	Job  string `path:"job" doc:"Key of the job."`
	From int64  `query:"from" minimum:"0" doc:"Offset in bytes."`
	Wait int    `query:"wait" minimum:"0" maximum:"20" doc:"Seconds to wait for output when there is none yet."`
	Run  int    `query:"run" minimum:"0" doc:"Number of the run; 0: the last one."`
}

func (s *jobHandlers) getJobLog(ctx context.Context, in *getJobLog) (*logPiece, error) {
	if _, err := s.job(ctx, in.Job); err != nil {
		return nil, err
	}
	key := bench.JobKey(in.Job)
	return s.follow(ctx, wanted{in.From, in.Wait}, func(ctx context.Context) (logState, error) {
		j, err := s.record.Job(ctx, key)
		if err != nil {
			return logState{}, err
		}
		runs, err := s.record.JobRuns(ctx, key)
		if err != nil {
			return logState{}, err
		}
		if in.Run == 0 && len(runs) == 0 {
			return logState{ended: !j.Status.Open()}, nil
		}
		var last bench.Run
		for _, r := range runs {
			if r.Number == in.Run || in.Run == 0 && r.Number > last.Number {
				last = r
			}
		}
		if last.ID == "" {
			return logState{}, problemf(http.StatusNotFound, "unknown-run", "job %s has no run %d: it has had %s; leave run out for the last one", key, in.Run, count(len(runs), "run"))
		}
		return logState{run: last.ID, ended: last.FinishedAt != nil}, nil
	})
}

type getRunLog struct {
	Run  string `path:"run" doc:"ID of the run."`
	From int64  `query:"from" minimum:"0" doc:"Offset in bytes."`
	Wait int    `query:"wait" minimum:"0" maximum:"20" doc:"Seconds to wait for output when there is none yet."`
}

func (s *jobHandlers) getRunLog(ctx context.Context, in *getRunLog) (*logPiece, error) {
	id, err := bench.ParseRunID(in.Run)
	if err != nil {
		return nil, err
	}
	return s.follow(ctx, wanted{in.From, in.Wait}, func(ctx context.Context) (logState, error) {
		r, err := s.record.Run(ctx, id)
		if err != nil {
			return logState{}, unknownRun(id, err)
		}
		return logState{run: r.ID, ended: r.FinishedAt != nil}, nil
	})
}

// logState names the run whose output is read, and whether more can come.
type logState struct {
	run   bench.RunID // empty: no run has begun
	ended bool
}

// follow reads a piece of output, and waits for it as long as the client asked.
func (s *jobHandlers) follow(ctx context.Context, in wanted, look func(context.Context) (logState, error)) (*logPiece, error) {
	wait := time.NewTimer(time.Duration(min(in.wait, maxWait)) * time.Second)
	defer wait.Stop()
	for again := in.wait > 0; ; {
		// Checked before reading, so that output written before the end is seen.
		state, err := look(ctx)
		if err != nil {
			return nil, err
		}
		piece := &logPiece{ContentType: plainText, Next: strconv.FormatInt(in.from, 10), Complete: strconv.FormatBool(state.ended), Run: string(state.run)}
		if state.run != "" {
			data, next, err := s.record.ReadLog(ctx, state.run, in.from, maxLogPiece)
			if err != nil {
				return nil, err
			}
			piece.Body, piece.Next = data, strconv.FormatInt(next, 10)
			piece.Complete = strconv.FormatBool(state.ended && len(data) < maxLogPiece)
		}
		if len(piece.Body) > 0 || state.ended || !again {
			return piece, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-stopping(ctx):
			again = false
		case <-wait.C:
			again = false
		case <-time.After(lookEvery):
		}
	}
}
