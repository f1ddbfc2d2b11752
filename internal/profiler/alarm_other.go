//go:build !linux

package profiler

// NewAlarm returns an alarm.
func NewAlarm() Alarm { return newTimerAlarm() }
