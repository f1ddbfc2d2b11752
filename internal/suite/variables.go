package suite

import (
	"fmt"
	"slices"
	"strings"
)

// A few short lines could otherwise use unlimited memory and time.
const (
	maxNesting   = 16      // depth of variables in variables
	maxExpansion = 1 << 20 // length of one value, in bytes
	maxLookups   = 10_000  // variables in one value
)

// fault is a mistake in a template, with its position.
type fault struct {
	at      position
	message string
}

func (f *fault) Error() string { return f.message }

// scope holds the variables that a template sees.
type scope struct {
	// builtin are fixed values: paths, names of the test case.
	builtin map[string]string
	// layers hold the suite's own variables; a later layer hides earlier ones.
	layers []named[values]
}

func (s scope) lookup(name string) (values, bool) {
	for _, layer := range slices.Backward(s.layers) {
		if v, ok := layer.get(name); ok {
			return v, true
		}
	}
	return values{}, false
}

func (s scope) known() string {
	var names []string
	for name := range s.builtin {
		names = append(names, name)
	}
	for _, layer := range s.layers {
		names = append(names, layer.names()...)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// one resolves a template to a string.
func (s scope) one(t text) (string, error) {
	return (&expansion{scope: s}).expand(t, nil)
}

// each resolves a template that is a whole element of a list; a list variable
// yields all of its elements.
func (s scope) each(t text) ([]string, error) {
	return (&expansion{scope: s}).splice(t, nil)
}

// expansion resolves one template. The variables being resolved are passed on
// as "within".
type expansion struct {
	scope
	lookups int
}

func (s *expansion) splice(t text, within []string) ([]string, error) {
	if name, ok := wholeVariable(t.value); ok {
		if v, ok := s.lookup(name); ok && v.list {
			within, err := s.enter(name, t.at, within)
			if err != nil {
				return nil, err
			}
			out := []string{}
			size := 0
			for _, item := range v.texts {
				more, err := s.splice(item, within)
				if err != nil {
					return nil, err
				}
				for _, m := range more {
					size += len(m) + 1
				}
				if size > maxExpansion {
					return nil, &fault{t.at, fmt.Sprintf("the variable ${%s} becomes longer than %d bytes", name, maxExpansion)}
				}
				out = append(out, more...)
			}
			return out, nil
		}
	}
	value, err := s.expand(t, within)
	if err != nil {
		return nil, err
	}
	return []string{value}, nil
}

func (s *expansion) expand(t text, within []string) (string, error) {
	var out strings.Builder
	rest := t.value
	for {
		before, after, found := strings.Cut(rest, "$")
		out.WriteString(before)
		if !found {
			break
		}
		if strings.HasPrefix(after, "$") {
			out.WriteByte('$')
			rest = after[1:]
			continue
		}
		name, tail, ok := variableName(after)
		if !ok {
			return "", &fault{t.at, "a dollar sign must begin a variable such as ${work}; for the sign itself write $$"}
		}
		value, err := s.variable(name, t.at, within)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		if out.Len() > maxExpansion {
			return "", &fault{t.at, fmt.Sprintf("this becomes longer than %d bytes", maxExpansion)}
		}
		rest = tail
	}
	return out.String(), nil
}

func (s *expansion) variable(name string, at position, within []string) (string, error) {
	if value, ok := s.builtin[name]; ok {
		return value, nil
	}
	v, ok := s.lookup(name)
	if !ok {
		return "", &fault{at, fmt.Sprintf("unknown variable ${%s}; known here: %s", name, s.known())}
	}
	if v.list {
		return "", &fault{at, fmt.Sprintf("the variable ${%s} is a list; it can only be a whole element of a list", name)}
	}
	within, err := s.enter(name, at, within)
	if err != nil {
		return "", err
	}
	return s.expand(v.texts[0], within)
}

func (s *expansion) enter(name string, at position, within []string) ([]string, error) {
	if slices.Contains(within, name) {
		return nil, &fault{at, fmt.Sprintf("the variable ${%s} contains itself", name)}
	}
	if s.lookups++; s.lookups > maxLookups {
		return nil, &fault{at, fmt.Sprintf("this contains more than %d variables", maxLookups)}
	}
	if len(within) >= maxNesting {
		return nil, &fault{at, fmt.Sprintf("the variable ${%s} is nested more than %d deep", name, maxNesting)}
	}
	return append(slices.Clip(within), name), nil
}

// variableName splits "{name}rest".
func variableName(s string) (name, rest string, ok bool) {
	if !strings.HasPrefix(s, "{") {
		return "", "", false
	}
	name, rest, ok = strings.Cut(s[1:], "}")
	return name, rest, ok && validVariable(name)
}

// wholeVariable returns the name if s is "${name}" and nothing else.
func wholeVariable(s string) (string, bool) {
	if !strings.HasPrefix(s, "$") {
		return "", false
	}
	name, rest, ok := variableName(s[1:])
	return name, ok && rest == ""
}

func validVariable(name string) bool {
	if name == "" || len(name) > 64 || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// variablesIn lists the variables that a template names.
func variablesIn(s string) (names []string) {
	for {
		_, after, found := strings.Cut(s, "$")
		if !found {
			return names
		}
		if name, rest, ok := variableName(after); ok {
			names = append(names, name)
			s = rest
		} else {
			s = strings.TrimPrefix(after, "$")
		}
	}
}
