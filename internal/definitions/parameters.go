package definitions

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// Parameter is a parameter of a template, or a switch.
type Parameter struct {
	Name        string `json:"name"`
	Type        Type   `json:"type"`
	Description string `json:"description,omitempty"`
	// Default is used if no value is given; nil if one must be.
	Default Value `json:"default,omitempty"`
	// Example stands for a value when the folder is checked; nil if the default does.
	Example Value `json:"example,omitempty"`
	// OneOf lists the valid values of a string, or of a list's entries; empty allows all.
	OneOf []string `json:"one_of,omitempty"`
	// Minimum and Maximum bound an int; nil sets no bound.
	Minimum *int64 `json:"minimum,omitempty"`
	Maximum *int64 `json:"maximum,omitempty"`

	at position
}

// maxEntries bounds the entries of a list.
const maxEntries = 10_000

var parameterName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// reservedNames are words of CEL, and the variables that are always there.
var reservedNames = []string{
	"branch", "switches", "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
	"package", "namespace", "return", "var", "void", "while", "int", "string", "size", "type", "bool", "list", "map", "double", "uint", "bytes", "dyn", "has",
}

func checkVariableName(name string) error {
	switch {
	case !parameterName.MatchString(name):
		return fmt.Errorf("%q cannot be a name; use up to 64 lower-case letters, digits and '_', beginning with a letter", name)
	case slices.Contains(reservedNames, name):
		return fmt.Errorf("the name %q is reserved; use another", name)
	}
	return nil
}

// parameters reads the parameters of a template.
func (d *decoder) parameters(o object) []Parameter {
	v, given := o.get("parameters")
	if !given {
		return nil
	}
	return d.declared(v)
}

// declared reads parameters or switches.
func (d *decoder) declared(v *value) []Parameter {
	if v.kind != mapping {
		d.mistyped(v, "a mapping of names and what they stand for")
		return nil
	}
	var list []Parameter
	for _, p := range v.pairs {
		if err := checkVariableName(p.key); err != nil {
			d.add(p.at, "%v", err)
			continue
		}
		if parameter, ok := d.parameter(p); ok {
			list = append(list, parameter)
		}
	}
	return list
}

func (d *decoder) parameter(p pair) (Parameter, bool) {
	before := len(d.list)
	o := d.object(p.value, "type", "description", "default", "example", "one_of", "minimum", "maximum")
	o.need("type")
	if p.value.holes {
		d.add(p.value.at, "a parameter cannot use variables; write $$ for a dollar sign")
	}
	if len(d.list) > before {
		return Parameter{}, false
	}
	out := Parameter{Name: p.key, Type: Type(o.text("type")), Description: o.text("description"), OneOf: o.texts("one_of"), at: p.at}
	if !slices.Contains([]Type{TypeString, TypeInt, TypeBool, TypeList}, out.Type) {
		d.add(o.fields["type"].value.at, "type %q is unknown; use string, int, bool or list (of strings)", out.Type)
		return Parameter{}, false
	}
	for key, into := range map[string]**int64{"minimum": &out.Minimum, "maximum": &out.Maximum} {
		if v, given := o.get(key); given {
			n := int64(d.integer(v))
			*into = &n
			if out.Type != TypeInt {
				d.add(v.at, "%s is for parameters of type int", key)
			}
		}
	}
	if v, given := o.get("one_of"); given && out.Type != TypeString && out.Type != TypeList {
		d.add(v.at, "one_of is for parameters of type string or list")
	}
	for _, key := range []string{"default", "example"} {
		v, given := o.get(key)
		if !given {
			continue
		}
		read, err := out.read(v)
		if err != nil {
			d.add(v.at, "%v", err)
			continue
		}
		if key == "default" {
			out.Default = read
		} else {
			out.Example = read
		}
	}
	return out, len(d.list) == before
}

// read returns a written value as a value of the parameter.
func (p Parameter) read(v *value) (Value, error) {
	var out Value
	switch {
	case p.Type == TypeString && (v.kind == textual || v.kind == number || v.kind == boolean):
		out = literalText(v)
	case p.Type == TypeInt && v.kind == number:
		n, err := strconv.ParseInt(v.text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a whole number", p.Name, v.text)
		}
		out = n
	case p.Type == TypeBool && v.kind == boolean:
		out = strings.EqualFold(v.text, "true")
	case p.Type == TypeList && v.kind == listing:
		list := make([]string, len(v.list))
		for i, item := range v.list {
			if item.kind == listing || item.kind == mapping {
				return nil, fmt.Errorf("%s: a list holds strings, not %s", p.Name, item.kind)
			}
			list[i] = literalText(item)
		}
		out = list
	default:
		return nil, fmt.Errorf("%s is of type %s, and this is %s", p.Name, p.Type, v.kind)
	}
	return out, p.check(out)
}

// check refuses a value that the parameter does not admit.
func (p Parameter) check(v Value) error {
	switch v := v.(type) {
	case string:
		if p.Type == TypeString {
			return p.among(v)
		}
	case int64:
		if p.Type == TypeInt {
			if p.Minimum != nil && v < *p.Minimum {
				return fmt.Errorf("%s is %d; use at least %d", p.Name, v, *p.Minimum)
			}
			if p.Maximum != nil && v > *p.Maximum {
				return fmt.Errorf("%s is %d; use at most %d", p.Name, v, *p.Maximum)
			}
			return nil
		}
	case bool:
		if p.Type == TypeBool {
			return nil
		}
	case []string:
		if p.Type == TypeList {
			if len(v) > maxEntries {
				return fmt.Errorf("%s has %d entries; use at most %d", p.Name, len(v), maxEntries)
			}
			for _, entry := range v {
				if err := p.among(entry); err != nil {
					return err
				}
			}
			return nil
		}
	default:
		return fmt.Errorf("%s is of type %s, and %T is no value of a parameter", p.Name, p.Type, v)
	}
	return fmt.Errorf("%s is of type %s, and the value of type %s", p.Name, p.Type, typeOf(v))
}

func (p Parameter) among(s string) error {
	if len(p.OneOf) > 0 && !slices.Contains(p.OneOf, s) {
		return fmt.Errorf("%s cannot be %q; use %s", p.Name, s, strings.Join(p.OneOf, ", "))
	}
	return nil
}

// sample returns a value to check the template with; nil if none.
func (p Parameter) sample() Value {
	if p.Example != nil {
		return p.Example
	}
	return p.Default
}

// values fills in the values of parameters: given ones, else the branch's, else defaults.
func values(of string, parameters []Parameter, given, branch map[string]Value) (scope, error) {
	names := make([]string, len(parameters))
	out := make(scope, len(parameters))
	for i, p := range parameters {
		names[i] = p.Name
		v, ok := given[p.Name]
		if !ok {
			v, ok = branch[p.Name]
		}
		if !ok {
			v = p.Default
		}
		if v == nil {
			return nil, fmt.Errorf("%w: %s needs a value for its parameter %q (%s)", bench.ErrInvalid, of, p.Name, p.Type)
		}
		if err := p.check(v); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", bench.ErrInvalid, of, err)
		}
		out[p.Name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			has := "it has none"
			if len(names) > 0 {
				has = "it has " + strings.Join(names, ", ")
			}
			return nil, fmt.Errorf("%w: %s has no parameter %q; %s", bench.ErrInvalid, of, name, has)
		}
	}
	return out, nil
}

// parse reads a value from a command line: entries of a list are separated by commas, or in
// a JSON array.
func (p Parameter) parse(text string) (Value, error) {
	var v Value = text
	var err error
	switch p.Type {
	case TypeString:
	case TypeInt:
		v, err = strconv.ParseInt(text, 10, 64)
	case TypeBool:
		v, err = strconv.ParseBool(text)
	case TypeList:
		var list []string
		if strings.HasPrefix(text, "[") {
			err = json.Unmarshal([]byte(text), &list)
		} else if text != "" {
			list = strings.Split(text, ",")
		}
		v = list
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %q is no value of the parameter %s, which is of type %s", bench.ErrInvalid, text, p.Name, p.Type)
	}
	return v, nil
}
