package definitions

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Type is the type of a parameter or a switch.
type Type string

const (
	TypeString Type = "string"
	TypeInt    Type = "int"
	TypeBool   Type = "bool"
	// TypeList is a list of strings.
	TypeList Type = "list"
)

// Value is the value of a parameter, a switch or a variable: a string, an int64, a bool or
// a []string.
type Value = any

func typeOf(v Value) Type {
	switch v.(type) {
	case string:
		return TypeString
	case int64:
		return TypeInt
	case bool:
		return TypeBool
	}
	return TypeList
}

// part is a piece of a text: a variable's name, or else literal text.
type part struct{ name, literal string }

var variablePattern = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$`)

// split divides a text into literals and variables, written ${name}. "$$" is a dollar sign.
func split(text string) ([]part, error) {
	var parts []part
	literal := func(s string) {
		if n := len(parts); n > 0 && parts[n-1].name == "" {
			parts[n-1].literal += s
		} else if s != "" {
			parts = append(parts, part{literal: s})
		}
	}
	for {
		before, rest, more := strings.Cut(text, "$")
		literal(before)
		if !more {
			return parts, nil
		}
		if after, ok := strings.CutPrefix(rest, "$"); ok {
			literal("$")
			text = after
			continue
		}
		name, after, closed := strings.Cut(strings.TrimPrefix(rest, "{"), "}")
		if !strings.HasPrefix(rest, "{") || !closed || !variablePattern.MatchString(name) {
			return nil, errors.New("after '$' comes a variable, such as ${tag}; write $$ for a dollar sign")
		}
		parts = append(parts, part{name: name})
		text = after
	}
}

// scope holds the variables at a place.
type scope map[string]Value

// maxFilled bounds a value with its variables replaced, in bytes: a list within a list of
// variables would turn a small file into gigabytes.
const maxFilled = 4 << 20

// fill returns the value with its variables replaced. A variable that stands for a whole
// value keeps its type; within a list, a list variable stands for its entries.
func (s scope) fill(v *value) (*value, error) {
	f := filling{s, maxFilled}
	return f.value(v)
}

// filling replaces variables until the result is too large.
type filling struct {
	scope
	left int
}

// spend counts a value of size bytes, and the memory to hold it.
func (f *filling) spend(at position, size int) error {
	const each = 64
	if f.left -= size + each; f.left < 0 {
		return &placedError{at, fmt.Sprintf("its variables make more than %d MB of this; use shorter lists, or fewer", maxFilled>>20)}
	}
	return nil
}

func (f *filling) value(v *value) (*value, error) {
	if !v.holes {
		return v, nil
	}
	filled := *v
	filled.holes, filled.parts = false, nil
	switch v.kind {
	case listing:
		filled.list = make([]*value, 0, len(v.list))
		for _, item := range v.list {
			one, err := f.value(item)
			if err != nil {
				return nil, err
			}
			if one.kind == listing && item.whole() != "" {
				filled.list = append(filled.list, one.list...)
				continue
			}
			filled.list = append(filled.list, one)
		}
	case mapping:
		filled.pairs = make([]pair, len(v.pairs))
		for i, p := range v.pairs {
			one, err := f.value(p.value)
			if err != nil {
				return nil, err
			}
			filled.pairs[i] = pair{p.key, p.at, one}
		}
	default:
		if name := v.whole(); name != "" {
			return f.literal(v.at, name)
		}
		text, err := f.text(v)
		if err != nil {
			return nil, err
		}
		filled.text, filled.exact = text, 0
	}
	return &filled, nil
}

// text returns a text with its variables replaced.
func (f *filling) text(v *value) (string, error) {
	var text strings.Builder
	for _, p := range v.parts {
		if p.name == "" {
			text.WriteString(p.literal)
			continue
		}
		one, err := f.literal(v.at, p.name)
		if err != nil {
			return "", err
		}
		if one.kind == listing {
			return "", &placedError{v.at, fmt.Sprintf("${%s} is a list and cannot be a part of a text; use it as a whole value, or loop over it with 'for'", p.name)}
		}
		text.WriteString(one.text)
	}
	return text.String(), nil
}

// literal returns a variable as a YAML value.
func (f *filling) literal(at position, name string) (*value, error) {
	known, ok := f.scope[name]
	if !ok {
		return nil, &placedError{at, unknownVariable(name, slices.Sorted(maps.Keys(f.scope)))}
	}
	switch k := known.(type) {
	case string:
		return &value{kind: textual, at: at, text: k}, f.spend(at, len(k))
	case int64:
		return &value{kind: number, at: at, text: strconv.FormatInt(k, 10)}, nil
	case bool:
		return &value{kind: boolean, at: at, text: strconv.FormatBool(k)}, nil
	case []string:
		list := make([]*value, len(k))
		for i, text := range k {
			if err := f.spend(at, len(text)); err != nil {
				return nil, err
			}
			list[i] = &value{kind: textual, at: at, text: text}
		}
		return &value{kind: listing, at: at, list: list}, nil
	}
	return nil, &placedError{at, fmt.Sprintf("${%s} has no value", name)}
}

func unknownVariable(name string, known []string) string {
	return fmt.Sprintf("the variable ${%s} is unknown here; known are %s", name, strings.Join(known, ", "))
}

// placedError is an error with a place.
type placedError struct {
	at      position
	message string
}

func (e *placedError) Error() string { return e.message }

// checkHoles reports variables that are not known.
func checkHoles(v *value, types map[string]Type, ps *problems) {
	if v == nil || !v.holes {
		return
	}
	if v.wrong != "" {
		ps.add(v.at, "%s", v.wrong)
	}
	for _, p := range v.parts {
		if _, known := types[p.name]; p.name != "" && !known {
			ps.add(v.at, "%s", unknownVariable(p.name, slices.Sorted(maps.Keys(types))))
		}
	}
	for _, item := range v.list {
		checkHoles(item, types, ps)
	}
	for _, p := range v.pairs {
		checkHoles(p.value, types, ps)
	}
}
