package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Priority orders a job among the others that wait in its task queue.
type Priority struct {
	Level  int
	Queue  string
	Turn   int `json:",omitempty"`
	Weight float64
	// Again is set when the job was dispatched before.
	Again bool `json:",omitempty"`
}

// FairnessKey returns the key under which Temporal accounts for the job: the name of
// its queue, with a number once jobs of the queue were cancelled while waiting in
// Temporal. Jobs dispatched before have a separate key, see [FairnessKeyAgain].
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

// again is the suffix of the fairness keys of jobs dispatched before.
const again = "#again"

// FairnessKeyAgain returns the fairness key of a job that was dispatched with key
// before. With it the job joins at the head of its level; with the first key it would
// wait behind all of its queue.
func FairnessKeyAgain(key string) string {
	if strings.HasSuffix(key, again) {
		return key
	}
	return fitting(key, again)
}

// maxFairnessKey is Temporal's limit in bytes; a longer key fails the workflow task.
const maxFairnessKey = 64

// fitting returns a name with a suffix. The end of a name that is too long is replaced
// by its digest.
func fitting(name, suffix string) string {
	if len(name)+len(suffix) <= maxFairnessKey {
		return name + suffix
	}
	digest := sha256.Sum256([]byte(name))
	short := "~" + hex.EncodeToString(digest[:8]) + suffix
	return strings.ToValidUTF8(name[:maxFairnessKey-len(short)], "") + short
}
