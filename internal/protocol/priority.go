package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Priority is a job's place among those that wait in its task queue.
type Priority struct {
	Level  int
	Queue  string
	Turn   int `json:",omitempty"`
	Weight float64
	// Again: the job was dispatched before.
	Again bool `json:",omitempty"`
}

// FairnessKey is by what Temporal charges the job's queue: its name, and a number once
// some of its jobs were cancelled while they waited in Temporal. What was dispatched
// before has a key of its own, see [FairnessKeyAgain].
func (p Priority) FairnessKey() string {
	key := p.Queue
	if p.Turn != 0 {
		key += "#" + strconv.Itoa(p.Turn)
	}
	if p.Again {
		return FairnessKeyAgain(key)
	}
	return fitting(key, "")
}

// again ends the fairness keys of what was dispatched before.
const again = "#again"

// FairnessKeyAgain is the fairness key of what was dispatched with another one before.
// By its own key it joins at the head of its level, by its first one it would be behind
// all of its queue.
func FairnessKeyAgain(key string) string {
	if strings.HasSuffix(key, again) {
		return key
	}
	return fitting(key, again)
}

// maxFairnessKey is how many bytes Temporal takes; more fails the workflow's task.
const maxFairnessKey = 64

// fitting is a name with a suffix; one that is too long ends in a digest of its own.
func fitting(name, suffix string) string {
	if len(name)+len(suffix) <= maxFairnessKey {
		return name + suffix
	}
	digest := sha256.Sum256([]byte(name))
	short := "~" + hex.EncodeToString(digest[:8]) + suffix
	return strings.ToValidUTF8(name[:maxFairnessKey-len(short)], "") + short
}
