package profiler

// Units are the units of all metrics.
var Units = units

// StartProgram starts a program as NvidiaSMI does.
var StartProgram = startProgram

// NewTimerAlarm returns the alarm of systems without timers of the kernel.
func NewTimerAlarm() Alarm { return newTimerAlarm() }
