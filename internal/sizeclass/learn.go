package sizeclass

import (
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Attempt describes the end of an attempt at a job.
type Attempt struct {
	// ID is unique to the attempt: learning from it again changes nothing.
	ID string
	// Job is shared by the attempts at one job. A probe was selected with the ID of its job or its attempt.
	Job     string
	Class   bench.SizeClass
	Outcome Outcome
	// Duration of the attempt, and its Timeout.
	Duration, Timeout time.Duration
	// OwnLimit is set if the attempt was ended at the job's own limit, which applies on all classes, and not at the timeout.
	OwnLimit bool
	// At is the time of its end.
	At time.Time
	// Largest is set if Class was the largest that the job may run on.
	Largest bool
	// Complete is set if the attempt's time is meaningful; see [Work.Complete].
	Complete bool
	// PeakMemory in bytes and CPUTime; 0 if not measured.
	PeakMemory int64
	CPUTime    time.Duration
}

// Work describes how much of a job an attempt did.
type Work struct {
	// Resumed is set if it continued the work of other attempts.
	Resumed bool
	// Done is the number of test cases, of All, with a result from it.
	Done, All int
}

// Complete reports whether an attempt did the whole job by itself, from the start; others say nothing about time. An attempt
// that timed out never completes the job; it counts if it had to do all of it.
func (w Work) Complete(o Outcome) bool {
	return !w.Resumed && (o == TimedOut || w.Done == w.All)
}

const (
	// A class that was adequate is forgotten after this number of consecutive attempts for which it was too small: two that
	// ran out of memory, because memory hardly varies, three of any other kind.
	streakMemory = 2
	streakOther  = 3
	// A job has changed if changedRuns consecutive successes all take more than changedBy times (or less than 1/changedBy
	// of) the median of at least settledBy others, and each more (or less) than any of those.
	changedRuns = 3
	changedBy   = 1.5
	settledBy   = 8
)

// Learn returns the statistics updated from an attempt. It is called when each attempt ends, so that nothing is lost if a
// process dies between two. An unknown outcome or class changes nothing.
func (a *Analyzer) Learn(s Statistics, t Attempt) Statistics {
	if t.ID != "" && slices.Contains(s.Learned, t.ID) {
		return s
	}
	s = s.clone()
	mark, probe := s.release(t)
	if _, err := bench.NewSizeClass(int(t.Class)); err != nil || !t.Outcome.known() {
		return s
	}
	if t.ID != "" {
		s.Learned = append(s.Learned[max(0, len(s.Learned)-keptIDs+1):], t.ID)
	}
	s.spend(t, mark, probe)
	switch {
	case t.Outcome == Succeeded:
		s.succeed(t, a.policy)
	case t.Largest:
		s.FailedOnLargest, s.LastFailure = t.At, t.At
		s.dropPending(t.Job)
		s.Runs++
	default:
		s.tooSmall(t, a.policy)
	}
	return s
}

// release releases the mark of an attempt and reports whether the attempt was that probe: its job may have ended elsewhere.
func (s *Statistics) release(t Attempt) (Mark, bool) {
	i := slices.IndexFunc(s.Marks, func(m Mark) bool { return m.ID == t.ID || t.Job != "" && m.ID == t.Job })
	if i < 0 {
		return Mark{}, false
	}
	mark := s.Marks[i]
	s.Marks = slices.Delete(s.Marks, i, i+1)
	return mark, mark.Class == t.Class
}

// spend accounts for the cost of an attempt.
func (s *Statistics) spend(t Attempt, mark Mark, probe bool) {
	cost := max(0, t.Duration.Seconds()) * float64(t.Class)
	s.Spent.Total = min(s.Spent.Total+cost, mostCoreSeconds)
	if !probe {
		return
	}
	extra := cost
	if t.Outcome == Succeeded {
		extra = max(0, cost-mark.Instead)
	} else {
		s.Counts.TooSmall++
	}
	s.Spent.Probes = min(s.Spent.Probes+extra, mostCoreSeconds)
}

func (s *Statistics) succeed(t Attempt, p Policy) {
	if t.Largest {
		s.FailedOnLargest = time.Time{}
	}
	s.confirm(t, p)
	h := s.edit(t.Class)
	h.Tried, h.Streak, h.StreakSince = s.Runs, 0, time.Time{}
	s.Runs++
	if !t.Complete {
		return
	}
	h.add(t.sample(), p.History)
	if since, changed := h.changed(); changed {
		s.forget(since)
	}
}

// tooSmall learns from an attempt below the largest class that did not succeed.
func (s *Statistics) tooSmall(t Attempt, p Policy) {
	h := s.edit(t.Class)
	h.Tried = s.Runs
	sample := t.sample()
	switch {
	case t.Outcome == OutOfMemory:
	case t.Outcome == TimedOut && !t.OwnLimit:
		if !t.Complete {
			return
		}
		if t.Timeout > 0 {
			sample.Duration = t.Timeout
		}
	default: // it could be the job's own fault
		sample.Pending = true
	}
	h.add(sample, p.History)
	if !sample.Pending {
		s.lengthen(t.Class, sample, p)
	}
}

// confirm classifies failures of the job on smaller classes as too small.
func (s *Statistics) confirm(t Attempt, p Policy) {
	if t.Job == "" {
		return
	}
	for i := range s.Classes {
		if s.Classes[i].Class >= t.Class {
			continue
		}
		var last Sample
		samples := slices.Clone(s.Classes[i].Samples)
		for j := range samples {
			if samples[j].Pending && samples[j].Job == t.Job {
				samples[j].Pending, last = false, samples[j]
			}
		}
		if last.Outcome != "" {
			s.Classes[i].Samples = samples
			s.lengthen(s.Classes[i].Class, last, p)
		}
	}
}

// dropPending classifies failures of the job on smaller classes as its own.
func (s *Statistics) dropPending(job string) {
	for i := range s.Classes {
		s.Classes[i].Samples = slices.DeleteFunc(slices.Clone(s.Classes[i].Samples), func(x Sample) bool { return x.Pending && x.Job == job })
	}
}

// lengthen extends a class's streak and, once it shows that the job has changed, forgets the history before it.
func (s *Statistics) lengthen(class bench.SizeClass, sample Sample, p Policy) {
	h := s.edit(class)
	if sample.Outcome == TimedOut && !sample.OwnLimit && sample.Duration < s.acceptable(class, p) {
		return
	}
	if h.Streak++; h.Streak == 1 {
		h.StreakSince = sample.began()
	}
	enough := streakOther
	if sample.Outcome == OutOfMemory {
		enough = streakMemory
	}
	since := h.StreakSince
	good := slices.ContainsFunc(h.Samples, func(x Sample) bool { return x.Outcome == Succeeded && x.began().Before(since) })
	if h.Streak >= enough && good {
		s.forget(since)
	}
}

// acceptable returns the present acceptable time of a class, regardless of the available classes.
func (s *Statistics) acceptable(class bench.SizeClass, p Policy) time.Duration {
	for i := len(s.Classes) - 1; i >= 0; i-- {
		if h := s.Classes[i]; slices.ContainsFunc(h.Samples, func(x Sample) bool { return x.Outcome == Succeeded }) {
			return AcceptableTime(medianOf(h), max(1, Factor(h.Class, class, p.Exponent)), time.Duration(p.Minimum))
		}
	}
	return 0
}

// forget drops samples of attempts that started before the job changed.
func (s *Statistics) forget(since time.Time) {
	for i := range s.Classes {
		h := &s.Classes[i]
		h.Samples = slices.DeleteFunc(slices.Clone(h.Samples), func(x Sample) bool { return x.began().Before(since) })
		h.Streak, h.StreakSince = 0, time.Time{}
	}
	s.Since, s.Spent = s.Runs, Spent{}
	s.Counts.Forgotten++
}

// changed reports whether the latest successes differ from earlier ones, and the start of the first of them.
func (h *History) changed() (time.Time, bool) {
	good := make([]Sample, 0, len(h.Samples))
	for _, x := range h.Samples {
		if x.Outcome == Succeeded {
			good = append(good, x)
		}
	}
	if len(good) < changedRuns+settledBy {
		return time.Time{}, false
	}
	before, latest := good[:len(good)-changedRuns], good[len(good)-changedRuns:]
	d := make([]time.Duration, 0, len(before))
	for _, x := range before {
		d = append(d, x.Duration)
	}
	median := Median(d).Seconds() // sorts
	slower, faster := true, true
	for _, x := range latest {
		now := x.Duration.Seconds()
		slower = slower && x.Duration > d[len(d)-1] && now > median*changedBy
		faster = faster && x.Duration < d[0] && now < median/changedBy
	}
	return latest[0].began(), slower || faster
}

// add adds a sample and keeps the newest ones.
func (h *History) add(x Sample, most int) {
	kept := h.Samples[max(0, len(h.Samples)-most+1):]
	h.Samples = append(slices.Clone(kept), x)
}

// began returns the start of the attempt, clamped to the earliest representable
// time.
func (x Sample) began() time.Time {
	if began := x.At.Add(-x.Duration); began.Year() > 0 {
		return began
	}
	return x.At
}

func (t Attempt) sample() Sample {
	return Sample{
		Outcome: t.Outcome, Duration: max(0, t.Duration), At: t.At, Job: t.Job,
		OwnLimit: t.OwnLimit && t.Outcome == TimedOut, PeakMemory: max(0, t.PeakMemory), CPUTime: max(0, t.CPUTime),
	}
}
