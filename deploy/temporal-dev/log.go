package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"go.temporal.io/server/common/log/tag"
)

// serverLogger writes the server's log to slog.
type serverLogger struct {
	log   *slog.Logger
	level *slog.LevelVar
}

func newServerLogger(w io.Writer, lowest slog.Level) serverLogger {
	level := new(slog.LevelVar)
	level.Set(lowest)
	return serverLogger{log: slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), level: level}
}

// quieten drops all later messages, including errors.
func (l serverLogger) quieten() { l.level.Set(slog.LevelError + 1) }

func (l serverLogger) Debug(msg string, tags ...tag.Tag) { l.write(slog.LevelDebug, msg, tags) }
func (l serverLogger) Info(msg string, tags ...tag.Tag)  { l.write(slog.LevelInfo, msg, tags) }
func (l serverLogger) Warn(msg string, tags ...tag.Tag)  { l.write(slog.LevelWarn, msg, tags) }
func (l serverLogger) Error(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// DPanic is for errors that panic in the server's own tests only.
func (l serverLogger) DPanic(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// Panic is called by code that cannot go on.
func (l serverLogger) Panic(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	panic(msg)
}

// Fatal is called by code that cannot go on, for example a service whose port was taken
// after it was chosen. The supervisor restarts the process.
func (l serverLogger) Fatal(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	os.Exit(1)
}

// refusalLogged is Temporal's message about each call that the guard refuses. It is left out,
// because the caller is told why, and anybody could fill the log.
const refusalLogged = "Authorization error"

func (l serverLogger) write(level slog.Level, msg string, tags []tag.Tag) {
	if msg == refusalLogged {
		return
	}
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	attrs := make([]slog.Attr, len(tags))
	for i, t := range tags {
		attrs[i] = slog.Any(t.Key(), t.Value())
	}
	l.log.LogAttrs(context.Background(), level, msg, attrs...)
}
