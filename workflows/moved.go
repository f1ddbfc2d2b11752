package workflows

import (
	"fmt"

	"github.com/benchloom/benchloom/internal/protocol"
)

// A job that waits at a pool without a live collector is moved from outside: its
// row first, then the task queue of the activity that waits. The workflow only
// follows, so that its next dispatch goes to the same place.

// followMoves takes in every move that it was told of.
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
