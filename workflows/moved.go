package workflows

import (
	"fmt"

	"github.com/benchloom/benchloom/internal/protocol"
)

// A job that waits at a pool without a live collector is moved from outside: first
// its row, then the task queue of the waiting activity. The workflow only follows, so
// that its next dispatch uses the same task queue.

// followMoves applies all moves that were signalled.
func (j *job) followMoves() bool {
	followed := false
	var moved protocol.Moved
	for j.moved.ReceiveAsync(&moved) {
		followed = j.follow(moved) || followed
		moved = protocol.Moved{}
	}
	return followed
}

func (j *job) follow(moved protocol.Moved) bool {
	if moved.TaskQueue == "" || moved.TaskQueue == j.in.TaskQueue {
		return false
	}
	j.in.TaskQueue, j.in.SizeClass = moved.TaskQueue, moved.SizeClass
	j.status.TaskQueue = moved.TaskQueue
	return true
}

func (j *job) waitsForCollector() string {
	return fmt.Sprintf("waits in task queue `%s` for an idle collector", j.in.TaskQueue)
}
