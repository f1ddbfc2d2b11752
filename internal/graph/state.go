package graph

import (
	"fmt"
	"strings"
	"time"
)

// Condition says how an input must have ended.
type Condition string

const (
	// OnSuccess: the input succeeded.
	OnSuccess Condition = "success"
	// OnResolved: the input ran to its end, in success or failure.
	OnResolved Condition = "resolved"
	// OnAny: the input ended in any way, even skipped or cancelled.
	OnAny Condition = "any"
)

// ParseCondition reads the name of a condition.
func ParseCondition(s string) (Condition, error) {
	c := Condition(s)
	return c, c.check()
}

func (c Condition) check() error {
	switch c {
	case OnSuccess, OnResolved, OnAny:
		return nil
	}
	return invalid("condition", string(c), "use success, resolved or any")
}

// Status is the status of a node in its graph.
type Status string

const (
	// Blocked: an input is missing. The node stands in no queue and its time counts as
	// no waiting time.
	Blocked Status = "blocked"
	// Ready: all inputs are there, and the node waits for a machine or a person.
	Ready     Status = "ready"
	Running   Status = "running"
	Success   Status = "success"
	Failure   Status = "failure"
	Skipped   Status = "skipped"
	Cancelled Status = "cancelled"
)

// Statuses lists all statuses.
func Statuses() []Status {
	return []Status{Blocked, Ready, Running, Success, Failure, Skipped, Cancelled}
}

// Ended reports whether the node neither runs nor waits for anything.
func (s Status) Ended() bool { return s == Success || s == Failure || s == Skipped || s == Cancelled }

// Fit tells how a status relates to a condition.
type Fit int

const (
	// Open: the condition may be met without anybody's help.
	Open Fit = iota
	// Met: the condition is met.
	Met
	// Unmet: only another run of the input can meet the condition.
	Unmet
	// Never: the input was skipped, for good.
	Never
)

// Given returns how an input's status relates to the condition.
func (c Condition) Given(s Status) Fit {
	switch {
	case !s.Ended():
		return Open
	case c == OnAny, s == Success, s == Failure && c == OnResolved:
		return Met
	case s == Skipped:
		return Never
	}
	return Unmet
}

// ReasonCode is the kind of a reason.
type ReasonCode string

const (
	// Waits: inputs have not ended.
	Waits ReasonCode = "waits"
	// InputFailed and InputCancelled: an input ended so, and the node needs more.
	InputFailed    ReasonCode = "input-failed"
	InputCancelled ReasonCode = "input-cancelled"
	// LimitPassed: an input ended badly and did not succeed within the time limit.
	LimitPassed ReasonCode = "limit-passed"
	// NoSignOff: no person answered within the time limit.
	NoSignOff ReasonCode = "no-sign-off"
)

// Reason tells why a node is blocked or was skipped.
type Reason struct {
	Code ReasonCode `json:"code"`
	// Node is the one at fault. For a skipped node, it is the first cause, however far
	// back.
	Node string `json:"node"`
	// More counts other inputs that are missing as well.
	More int `json:"more,omitempty"`
}

// String returns the reason as a part of a sentence; empty for none.
func (r Reason) String() string {
	more := ""
	if r.More > 0 {
		more = fmt.Sprintf(" and %d more", r.More)
	}
	switch r.Code {
	case Waits:
		return "waits for " + r.Node + more
	case InputFailed:
		return r.Node + " failed" + more
	case InputCancelled:
		return r.Node + " was cancelled" + more
	case LimitPassed:
		return r.Node + " did not succeed within the time limit"
	case NoSignOff:
		return "nobody signed off " + r.Node + " within the time limit"
	}
	return strings.TrimSpace(string(r.Code) + " " + r.Node)
}

// State is the state of a node in its graph.
type State struct {
	Status Status `json:"status"`
	// Since is when the node reached the status.
	Since time.Time `json:"since,omitzero"`
	// Until is when the node is skipped unless something happens: set for a sign-off that
	// is ready, and for a node that is blocked because an input ended badly.
	Until time.Time `json:"until,omitzero"`
	// Reason is set for blocked and skipped nodes.
	Reason Reason `json:"reason,omitzero"`
}

// Facts hold what is recorded of a node itself, apart from its inputs.
type Facts struct {
	// Status is Running, or how the node ended; empty: it waits.
	Status Status
	// Since is when Status was reached; for a node that waits, when it was asked for.
	Since time.Time
	// Reason belongs to a node recorded as Skipped.
	Reason Reason
	// HandedOut reports that a waiting node was given to the machines when its inputs were
	// met: what has become of the inputs since then does not hold it back.
	HandedOut bool
	// Asked is the call that last asked for the node, with what its runs since then gave;
	// Earlier lists the calls before it, in order.
	Asked   Ask
	Earlier []Ask
}

// Ask is a call that asked for a node: the graph's creation or a rerun.
type Ask struct {
	// Wave numbers the calls of a graph: 0 the creation, then one for each rerun, of
	// however many nodes. Nodes of one call wait for each other's new runs.
	Wave int
	// FirstSuccess is when a run first succeeded between this call and the next one that
	// asked for the node; zero: none did.
	FirstSuccess time.Time
}

func (f Facts) check() error {
	switch f.Status {
	case "", Running, Success, Failure, Skipped, Cancelled:
	default:
		return invalid("recorded status", string(f.Status), "it follows from the inputs; record none, running, or how the node ended")
	}
	if (f.Reason != Reason{}) != (f.Status == Skipped) {
		return invalid("reason", f.Reason.String(), "a node has one if it was skipped, and only then")
	}
	wave := -1
	for _, a := range f.asks() {
		if a.Wave <= wave {
			return invalid("wave", fmt.Sprint(a.Wave), "waves count from 0 and ascend")
		}
		wave = a.Wave
	}
	return nil
}

// asks returns all calls that asked for the node, in order.
func (f Facts) asks() []Ask { return append(f.Earlier[:len(f.Earlier):len(f.Earlier)], f.Asked) }

// Input is an edge with what is known of its input.
type Input struct {
	Edge  Edge
	State State
	Facts Facts
}

// seen returns the input's state as a node sees it. An input that succeeded once has
// succeeded, whatever becomes of later runs, unless the node wants the latest. If one
// call asked for both, only what the input did since then counts.
func (in Input) seen(n Node, own Facts) State {
	if n.Latest || in.State.Status == Success {
		return in.State
	}
	var success time.Time
	for _, a := range in.Facts.asks() {
		if a.Wave == own.Asked.Wave {
			success = time.Time{}
		}
		if success.IsZero() {
			success = a.FirstSuccess
		}
	}
	if success.IsZero() {
		return in.State
	}
	return State{Status: Success, Since: success}
}

// StateOf is the rule by which the state of a node follows:
//
//  1. A node that runs or has ended is what its own facts say, and one that was handed out is
//     ready.
//  2. If an input that it needs was skipped, it is skipped for the same reason.
//  3. If an input ended otherwise than it needs, it is blocked until its limit has passed
//     since then, and skipped afterwards. The limit that passes first counts.
//  4. If an input has not ended, it is blocked without a limit.
//  5. Otherwise it is ready; a sign-off until its own limit has passed since then, when it
//     is skipped.
//
// Where several inputs decide alike, the first by name is named.
func StateOf(n Node, own Facts, inputs []Input, now time.Time) State {
	if own.Status != "" {
		return State{Status: own.Status, Since: own.Since, Reason: own.Reason}
	}
	if own.HandedOut {
		return State{Status: Ready, Since: own.Since}
	}
	var skipped, unmet, open tally
	ready := own.Since
	for _, in := range inputs {
		seen := in.seen(n, own)
		at := later(own.Since, seen.Since)
		switch in.Edge.Condition.Given(seen.Status) {
		case Never:
			skipped.add(in.Edge.From, at, seen)
		case Unmet:
			unmet.add(in.Edge.From, at, seen)
		case Open:
			open.add(in.Edge.From, time.Time{}, seen)
		case Met:
			ready = later(ready, seen.Since)
		}
	}
	switch {
	case skipped.count > 0:
		return State{Status: Skipped, Since: skipped.at, Reason: skipped.state.Reason}
	case unmet.count > 0:
		until := unmet.at.Add(n.Limit())
		if !now.Before(until) {
			return State{Status: Skipped, Since: until, Reason: Reason{Code: LimitPassed, Node: unmet.name}}
		}
		reason := Reason{Code: InputFailed, Node: unmet.name, More: unmet.count - 1}
		if unmet.state.Status == Cancelled {
			reason.Code = InputCancelled
		}
		return State{Status: Blocked, Since: own.Since, Until: until, Reason: reason}
	case open.count > 0:
		return State{Status: Blocked, Since: own.Since, Reason: Reason{Code: Waits, Node: open.name, More: open.count - 1}}
	}
	if s, ok := n.Job.definition.(SignOff); ok {
		until := ready.Add(time.Duration(s.LimitSeconds) * time.Second)
		if !now.Before(until) {
			return State{Status: Skipped, Since: until, Reason: Reason{Code: NoSignOff, Node: n.Name}}
		}
		return State{Status: Ready, Since: ready, Until: until}
	}
	return State{Status: Ready, Since: ready}
}

// tally counts inputs that decide alike and keeps the earliest.
type tally struct {
	count int
	name  string
	at    time.Time
	state State
}

func (t *tally) add(name string, at time.Time, s State) {
	t.count++
	if t.count == 1 || at.Before(t.at) || at.Equal(t.at) && name < t.name {
		t.name, t.at, t.state = name, at, s
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// States applies the rule to all nodes of a graph. A node without facts has always
// waited.
func States(g *Graph, facts map[string]Facts, now time.Time) map[string]State {
	states := make(map[string]State, len(g.nodes))
	for _, layer := range g.layers {
		for _, i := range layer {
			n := g.nodes[i]
			inputs := make([]Input, 0, len(g.inputs[i]))
			for _, l := range g.inputs[i] {
				from := g.nodes[l.node].Name
				inputs = append(inputs, Input{g.edges[l.edge], states[from], facts[from]})
			}
			states[n.Name] = StateOf(n, facts[n.Name], inputs, now)
		}
	}
	return states
}

// RollUp returns the status of a graph, or of a set of graphs, from the number of nodes
// with each status: open statuses take precedence over ends, and worse ends over better
// ones. It is empty if there are no nodes.
func RollUp(counts map[Status]int) Status {
	for _, s := range []Status{Running, Ready, Blocked, Failure, Cancelled, Skipped, Success} {
		if counts[s] > 0 {
			return s
		}
	}
	return ""
}
