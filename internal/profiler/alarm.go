package profiler

import (
	"sync"
	"time"
)

// Alarm lets one goroutine wait between samples.
type Alarm interface {
	// Wait waits for the time. It returns false, immediately, when Stop is or was called.
	Wait(d time.Duration) bool
	// Stop may be called from any goroutine, at any time before Close and more than once.
	Stop()
	// Close frees the resources of the alarm. Nobody waits any more.
	Close()
}

// timerAlarm waits with a timer of Go.
type timerAlarm struct {
	stopped chan struct{}
	stop    sync.Once
}

func newTimerAlarm() *timerAlarm { return &timerAlarm{stopped: make(chan struct{})} }

func (a *timerAlarm) Wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-a.stopped:
		return false
	default:
	}
	select {
	case <-timer.C:
		return true
	case <-a.stopped:
		return false
	}
}

func (a *timerAlarm) Stop() { a.stop.Do(func() { close(a.stopped) }) }

func (a *timerAlarm) Close() {}
