package definitions

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder reads values strictly. Where a value still has variables, it checks what it can
// and notes that the rest waits until they are filled in.
type decoder struct {
	*problems
	waits bool
}

// object is a mapping with known keys.
type object struct {
	d      *decoder
	at     position
	fields map[string]pair
}

// object reads a mapping whose keys are among the given ones.
func (d *decoder) object(v *value, keys ...string) object {
	o := object{d, v.at, make(map[string]pair, len(v.pairs))}
	if v.kind != mapping {
		d.mistyped(v, "a mapping with "+strings.Join(keys, ", "))
		return o
	}
	for _, p := range v.pairs {
		if !slices.Contains(keys, p.key) {
			d.add(p.at, "unknown key %q; allowed here: %s", p.key, strings.Join(keys, ", "))
			continue
		}
		o.fields[p.key] = p
	}
	return o
}

// need reports a missing key.
func (o object) need(keys ...string) {
	for _, key := range keys {
		if _, given := o.fields[key]; !given {
			o.d.add(o.at, "the key %q is missing", key)
		}
	}
}

func (o object) get(key string) (*value, bool) {
	p, given := o.fields[key]
	return p.value, given
}

func (d *decoder) mistyped(v *value, wanted string) {
	d.add(v.at, "this is %s; write %s", v.kind, wanted)
}

// open reports whether a value still has variables, and notes it.
func (d *decoder) open(v *value) bool {
	d.waits = d.waits || v.holes
	return v.holes
}

// scalar returns the text of a string, number or truth value, as it is written.
func (d *decoder) scalar(v *value, wanted string) string {
	if v.kind == listing || v.kind == mapping {
		d.mistyped(v, wanted)
		return ""
	}
	if d.open(v) {
		return ""
	}
	return literalText(v)
}

// literalText returns a scalar's text without variables.
func literalText(v *value) string {
	if v.kind != textual || v.parts == nil {
		return v.text
	}
	return v.parts[0].literal
}

func (o object) text(key string) string {
	if v, given := o.get(key); given {
		return o.d.scalar(v, "a string")
	}
	return ""
}

func (o object) integer(key string) int {
	v, given := o.get(key)
	if !given {
		return 0
	}
	return o.d.integer(v)
}

func (d *decoder) integer(v *value) int {
	if v.holes && v.kind == textual {
		d.open(v)
		return 0
	}
	n, err := strconv.Atoi(v.text)
	if v.kind != number || err != nil {
		d.mistyped(v, "a whole number")
		return 0
	}
	return n
}

func (o object) integers(key string) []int {
	v, given := o.get(key)
	if !given || o.d.open(v) {
		return nil
	}
	if v.kind != listing {
		return []int{o.d.integer(v)}
	}
	out := make([]int, len(v.list))
	for i, item := range v.list {
		out[i] = o.d.integer(item)
	}
	return out
}

func (o object) truth(key string) bool {
	v, given := o.get(key)
	if !given || o.d.open(v) {
		return false
	}
	if v.kind != boolean {
		o.d.mistyped(v, "true or false")
	}
	return v.kind == boolean && strings.EqualFold(v.text, "true")
}

// texts reads a list of strings; a single one may be written without brackets.
func (o object) texts(key string) []string {
	v, given := o.get(key)
	if !given {
		return nil
	}
	if v.kind != listing {
		return []string{o.d.scalar(v, "a list of strings")}
	}
	return o.d.texts(v)
}

func (d *decoder) texts(v *value) []string {
	out := make([]string, len(v.list))
	for i, item := range v.list {
		out[i] = d.scalar(item, "a string")
	}
	return out
}

// arguments reads a command as a list.
func (o object) arguments(key string) []string {
	v, given := o.get(key)
	if !given {
		return nil
	}
	if v.kind == textual && v.whole() != "" {
		o.d.open(v)
		return nil
	}
	if v.kind != listing {
		o.d.mistyped(v, `a command as a list, such as [go, build, ./...] (for a shell: [sh, -c, "…"])`)
		return nil
	}
	return o.d.texts(v)
}

// named reads a mapping of strings.
func (o object) named(key string) map[string]string {
	v, given := o.get(key)
	if !given {
		return nil
	}
	if v.kind != mapping {
		o.d.mistyped(v, "a mapping")
		return nil
	}
	out := make(map[string]string, len(v.pairs))
	for _, p := range v.pairs {
		out[p.key] = o.d.scalar(p.value, "a string")
	}
	return out
}

// seconds reads a duration, rounded up to whole seconds; 0 if not given.
func (o object) seconds(key string) int {
	v, given := o.get(key)
	if !given {
		return 0
	}
	text := o.d.scalar(v, "a duration")
	if v.holes {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		o.d.add(v.at, "%q is not a duration; write one above zero with its unit, such as 90s or 24h", text)
		return 0
	}
	return int((d + time.Second - 1) / time.Second)
}
