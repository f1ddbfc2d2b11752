package flame

import (
	"cmp"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// CallersLeftOut is the outermost frame of costs that callgrind's calls do not explain: of functions with
// too small a share for a stack of their own, and of those that call themselves through others.
const CallersLeftOut = "[callers left out]"

// leastShare is the smallest share of all that a callgrind stack has; smaller ones are summed up
// by function.
const leastShare = 1e-4

// costs has a value for each event.
type costs []float64

func (c costs) add(other costs) {
	for i := range other {
		c[i] += other[i]
	}
}

// node is a function in callgrind's file.
type node struct {
	frame
	self  costs
	calls map[*node]costs // by called function, with the costs of the calls
	sum   costs           // see inclusive
	// called tells whether another function calls this one.
	called bool
	// told is the part of self that has become stacks.
	told []int64
}

// inclusive returns the costs of a function and of all others that it calls, once the file has
// been read.
func (n *node) inclusive() costs {
	if n.sum == nil {
		n.sum = slices.Clone(n.self)
		for to, c := range n.calls {
			if to != n {
				n.sum.add(c)
			}
		}
	}
	return n.sum
}

// callgrindFile follows the format's state, described in "Callgrind Format Specification" of the
// valgrind manual: names are given once, with a number that stands for them later.
type callgrindFile struct {
	*lines
	events    []string
	positions int
	objects   map[string]string
	files     map[string]string
	// functions has the names by number; nodes the functions by object, file and name.
	functions map[string]string
	nodes     map[frame]*node
	object    string
	file      string
	current   *node
	// The target of the next call.
	calledObject, calledFile string
	called                   *node
	isCall                   bool
}

// parseCallgrind reads the file of callgrind or cachegrind. It has costs by function and
// by pair of caller and called function, but no stacks. Stacks are made by dividing
// the costs of a function among its callers, in proportion to the costs of the calls. So each function's
// own costs are exact, and the costs of a stack are an estimate wherever a function
// costs its callers differently.
func parseCallgrind(r io.Reader) (*profile.Profile, error) {
	f := &callgrindFile{
		lines: newLines(r), positions: 1,
		objects: map[string]string{}, files: map[string]string{}, functions: map[string]string{}, nodes: map[frame]*node{},
	}
	for f.next() {
		if err := f.line(strings.TrimSpace(f.Text())); err != nil {
			return nil, err
		}
	}
	if err := f.failure(); err != nil {
		return nil, err
	}
	if len(f.events) == 0 {
		return nil, f.wrong("the line 'events:' is missing")
	}
	var types []*profile.ValueType
	for _, e := range f.events {
		types = append(types, &profile.ValueType{Type: cut(e), Unit: "count"})
	}
	b := newBuilder(types...)
	b.p.DefaultSampleType = types[0].Type // Ir, instructions
	if err := f.stacks(b); err != nil {
		return nil, err
	}
	return b.done()
}

func (f *callgrindFile) line(line string) error {
	if line == "" || line[0] == '#' {
		return nil
	}
	if c := line[0]; c >= '0' && c <= '9' || c == '+' || c == '-' || c == '*' {
		return f.cost(line)
	}
	if key, value, isName := strings.Cut(line, "="); isName && !strings.ContainsAny(key, ": ") {
		return f.name(key, strings.TrimSpace(value))
	}
	key, value, isHeader := strings.Cut(line, ":")
	if !isHeader {
		return f.wrong("neither costs nor a name nor a header: %.80q", line)
	}
	switch key {
	case "events":
		if len(f.events) > 0 {
			return nil // of a further part
		}
		f.events = strings.Fields(value)
		if len(f.events) == 0 || len(f.events) > 64 {
			return f.wrong("%d events; between 1 and 64 are possible", len(f.events))
		}
	case "positions":
		f.positions = len(strings.Fields(value))
		if f.positions < 1 || f.positions > 2 {
			return f.wrong("positions are 'instr', 'line' or both: %.40q", value)
		}
	}
	return nil
}

// name takes a line such as "fn=(12) main", "cfn=(12)" or "calls=3 0".
func (f *callgrindFile) name(key, value string) (err error) {
	switch key {
	case "ob":
		f.object, err = f.known(f.objects, value)
	case "fl", "fi", "fe":
		f.file, err = f.known(f.files, value)
	case "fn":
		f.current, err = f.function(value, f.object, f.file)
	case "cob":
		f.calledObject, err = f.known(f.objects, value)
	case "cfl", "cfi":
		f.calledFile, err = f.known(f.files, value)
	case "cfn":
		f.called, err = f.function(value, cmp.Or(f.calledObject, f.object), cmp.Or(f.calledFile, f.file))
	case "calls":
		if f.called == nil || f.current == nil {
			return f.wrong("a call without caller or called function")
		}
		f.isCall = true
	case "jump", "jcnd", "jfi", "jfn":
	default:
		return f.wrong("%.40q is not known", key)
	}
	return err
}

// known returns a name that is given as "(1) name", "(1)" or "name".
func (f *callgrindFile) known(names map[string]string, value string) (string, error) {
	if !strings.HasPrefix(value, "(") {
		return value, nil
	}
	number, name, isClosed := strings.Cut(value[1:], ")")
	if number == "" || strings.Trim(number, "0123456789") != "" || !isClosed {
		return value, nil // a name that begins with a parenthesis
	}
	if name = strings.TrimSpace(name); name != "" {
		if len(names) == MaxFunctions {
			return "", f.wrong("there are more than %d names", MaxFunctions)
		}
		names[number] = cut(name)
		return names[number], nil
	}
	name, isKnown := names[number]
	if !isKnown {
		return "", f.wrong("the name with number %s was not given before", number)
	}
	return name, nil
}

func (f *callgrindFile) function(value, object, file string) (*node, error) {
	name, err := f.known(f.functions, value)
	if err != nil {
		return nil, err
	}
	at := frame{name: name, object: object}
	n, isKnown := f.nodes[at]
	if !isKnown {
		if len(f.nodes) == MaxFunctions {
			return nil, f.wrong("there are more than %d functions", MaxFunctions)
		}
		// Deeper calls of a recursion have a number: "rec'2".
		if base, level, isDeeper := cutLast(name, "'"); isDeeper && base != "" && level != "" && strings.Trim(level, "0123456789") == "" {
			name = base
		}
		n = &node{frame: frame{name: name, file: file, object: object}, self: make(costs, len(f.events)), calls: map[*node]costs{}}
		n.told = make([]int64, len(f.events))
		f.nodes[at] = n
	}
	return n, nil
}

func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// cost takes a line of positions and values. Right after a call, the line has the costs of the call.
func (f *callgrindFile) cost(line string) error {
	fields := strings.Fields(line)
	if f.current == nil || len(f.events) == 0 || len(fields) < f.positions || len(fields) > f.positions+len(f.events) {
		return f.wrong("costs without a function, or too many: %.80q", line)
	}
	to := f.current.self
	if f.isCall {
		if to = f.current.calls[f.called]; to == nil {
			to = make(costs, len(f.events))
			f.current.calls[f.called] = to
		}
		f.called.called = f.called.called || f.called != f.current
		f.called, f.calledObject, f.calledFile, f.isCall = nil, "", "", false
	}
	for i, text := range fields[f.positions:] {
		v, err := strconv.ParseInt(text, 0, 64)
		if err != nil || v < 0 {
			return f.wrong("%.40q is no number of events", text)
		}
		to[i] += float64(v)
	}
	return nil
}

// stacks divides the costs among stacks.
func (f *callgrindFile) stacks(b *builder) error {
	all := slices.SortedFunc(maps.Values(f.nodes), func(a, b *node) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.object, b.object))
	})
	total := 0.0
	for _, n := range all {
		total += n.self[0]
	}
	w := walk{b: b, least: total * leastShare}
	for _, n := range all {
		if !n.called {
			if err := w.from(n, n.inclusive()); err != nil {
				return err
			}
		}
	}
	for _, n := range all {
		left, some := make([]int64, len(n.self)), false
		for i, c := range n.self {
			left[i] = max(0, toInt(c)-n.told[i])
			some = some || left[i] > 0
		}
		if !some {
			continue
		}
		if err := b.add([]frame{n.frame, {name: CallersLeftOut}}, left...); err != nil {
			return err
		}
	}
	return nil
}

// walk descends from the outermost functions.
type walk struct {
	b     *builder
	least float64
	path  []*node
}

// from adds the stacks of a call with its costs.
func (w *walk) from(n *node, spent costs) error {
	if spent[0] < w.least || len(w.path) == MaxDepth || slices.Contains(w.path, n) || len(w.b.stacks) >= MaxStacks/2 {
		return nil
	}
	w.path = append(w.path, n)
	defer func() { w.path = w.path[:len(w.path)-1] }()
	// The part of the function's total costs that this call has.
	share := make(costs, len(spent))
	for i, c := range n.inclusive() {
		if c > 0 {
			share[i] = min(1, spent[i]/c)
		}
	}
	values, some := make([]int64, len(spent)), false
	for i, c := range n.self {
		values[i] = min(toInt(c*share[i]), toInt(c)-n.told[i])
		n.told[i] += values[i]
		some = some || values[i] > 0
	}
	if some {
		stack := make([]frame, 0, len(w.path))
		for _, m := range slices.Backward(w.path) {
			stack = append(stack, m.frame)
		}
		if err := w.b.add(stack, values...); err != nil {
			return err
		}
	}
	called := slices.SortedFunc(maps.Keys(n.calls), func(a, b *node) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.object, b.object))
	})
	for _, to := range called {
		part := make(costs, len(spent))
		for i, c := range n.calls[to] {
			part[i] = c * share[i]
		}
		if err := w.from(to, part); err != nil {
			return err
		}
	}
	return nil
}

// toInt rounds down, and bounds values that no int64 holds.
func toInt(v float64) int64 {
	if v >= math.MaxInt64/4 {
		return math.MaxInt64 / 4
	}
	return int64(v)
}
