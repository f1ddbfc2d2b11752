package profiler

// Units are the units of all metrics.
var Units = units

// StartProgram starts a program as NvidiaSMI does.
var StartProgram = startProgram
