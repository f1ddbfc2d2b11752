package suite

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Some inputs take the YAML library quadratic time.
const (
	maxDocument = 256 << 10 // bytes of suite.yaml
	maxOpen     = 500       // brackets and braces that are open at once
)

// decode reads suite.yaml strictly: an unknown key or type is a problem. All
// problems are collected, each with its position.
func decode(data []byte, ps *problems) *document {
	if len(data) > maxDocument {
		ps.add(position{}, "the file has %d bytes; at most %d are read", len(data), maxDocument)
		return nil
	}
	if at, deep := tooManyOpen(data); deep {
		ps.add(at, "more than %d brackets are open here; close them, and put long texts into files of the suite", maxOpen)
		return nil
	}
	body, problem := parse(data)
	if problem != nil {
		ps.put(*problem)
		return nil
	}
	if body == nil {
		ps.add(position{1, 1}, "the file is empty; a suite needs name, artifact and benchmarks")
		return nil
	}
	doc := &document{}
	(&decoder{problems: ps}).value(body, reflect.ValueOf(doc).Elem())
	return doc
}

// tooManyOpen returns the position at which brackets, even in strings, are
// nested too deeply.
func tooManyOpen(data []byte) (position, bool) {
	at, open := position{1, 0}, 0
	for _, c := range data {
		at.column++
		switch c {
		case '\n':
			at = position{at.line + 1, 0}
		case '[', '{':
			open++
		case ']', '}':
			open = max(0, open-1)
		}
		if open > maxOpen {
			return at, true
		}
	}
	return position{}, false
}

// parse parses text into the nodes of its only document. The text is untrusted:
// a panic of the YAML library is treated as a syntax error.
func parse(data []byte) (body ast.Node, problem *Problem) {
	defer func() {
		if r := recover(); r != nil {
			body, problem = nil, &Problem{File: FileName, Message: fmt.Sprintf("this is not YAML: %v", r)}
		}
	}()
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		p := Problem{File: FileName, Message: err.Error()}
		if located, ok := errors.AsType[yaml.Error](err); ok {
			p.Message = located.GetMessage()
			at := place(located.GetToken())
			p.Line, p.Column = at.line, at.column
		}
		p.Message = "this is not YAML: " + p.Message
		return nil, &p
	}
	for i, doc := range file.Docs {
		if i > 0 && doc.Body != nil {
			at := place(doc.Body.GetToken())
			return nil, &Problem{File: FileName, Line: at.line, Column: at.column, Message: "a second YAML document; write one"}
		}
		if i == 0 {
			body = doc.Body
		}
	}
	return body, nil
}

// decoder fills Go values from YAML nodes.
type decoder struct{ *problems }

// decodable is a type with its own decoding rules.
type decodable interface {
	decode(*decoder, ast.Node)
}

// placed is a struct that records its position.
type placed interface {
	place(position)
}

func place(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{1, 1}
	}
	return position{t.Position.Line, t.Position.Column}
}

// nodePlace returns the start of a node. The token of a mapping is its first
// colon, which does not help a reader.
func nodePlace(node ast.Node) position {
	switch n := node.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return nodePlace(n.Values[0])
		}
		return place(n.Start)
	case *ast.MappingValueNode:
		if n.Key != nil {
			return place(n.Key.GetToken())
		}
	}
	return place(node.GetToken())
}

func (d *decoder) value(node ast.Node, into reflect.Value) {
	if d.full() {
		return
	}
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		d.value(node, into.Elem())
		return
	}
	if p, ok := into.Addr().Interface().(placed); ok {
		p.place(nodePlace(node))
	}
	if custom, ok := into.Addr().Interface().(decodable); ok {
		custom.decode(d, node)
		return
	}
	switch into.Kind() {
	case reflect.Struct:
		d.structure(node, into)
	case reflect.Slice:
		d.slice(node, into)
	default:
		panic("suite: the document has a field of a type that cannot be decoded: " + into.Type().String())
	}
}

func (d *decoder) structure(node ast.Node, into reflect.Value) {
	fields := yamlFields(into)
	given := map[string]bool{}
	isMapping := d.mapping(node, func(key string, at position, value ast.Node) {
		given[key] = true
		i := slices.IndexFunc(fields, func(f yamlField) bool { return f.key == key })
		if i < 0 {
			d.add(at, "unknown key %q; allowed here: %s", key, keyList(fields))
			return
		}
		d.value(value, fields[i].value)
		d.checkEnum(fields[i])
	})
	for _, field := range fields {
		if isMapping && field.required && !given[field.key] {
			d.add(nodePlace(node), "the key %q is missing", field.key)
		}
	}
}

// yamlField is a field of a struct that is written as a key. Valid values come
// from the same tags as the JSON Schema.
type yamlField struct {
	key      string
	value    reflect.Value
	required bool
	enum     []string
}

// yamlFields lists the keys of a struct, embedded ones included.
func yamlFields(v reflect.Value) (fields []yamlField) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			fields = append(fields, yamlFields(v.Field(i))...)
			continue
		}
		key := field.Tag.Get("yaml")
		if key == "" {
			continue
		}
		f := yamlField{key: key, value: v.Field(i)}
		for _, rule := range strings.Split(field.Tag.Get("jsonschema"), ",") {
			if value, ok := strings.CutPrefix(rule, "enum="); ok {
				f.enum = append(f.enum, value)
			}
			f.required = f.required || rule == "required"
		}
		fields = append(fields, f)
	}
	return fields
}

func keyList(fields []yamlField) string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return strings.Join(keys, ", ")
}

func (d *decoder) checkEnum(field yamlField) {
	if len(field.enum) == 0 {
		return
	}
	if t := field.value.Interface().(text); t.given() && !slices.Contains(field.enum, t.value) {
		d.add(t.at, "%s %q is unknown; use %s", field.key, t.value, strings.Join(field.enum, ", "))
	}
}

func (d *decoder) slice(node ast.Node, into reflect.Value) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		d.mistyped(node, "a list")
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), 0, len(list.Values)))
	for _, item := range list.Values {
		element := reflect.New(into.Type().Elem()).Elem()
		d.value(item, element)
		into.Set(reflect.Append(into, element))
	}
}

// mapping calls visit once for each key of a mapping. It reports whether the
// node is one.
func (d *decoder) mapping(node ast.Node, visit func(key string, at position, value ast.Node)) bool {
	var pairs []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		d.mistyped(node, "a mapping")
		return false
	}
	seen := map[string]position{}
	for _, pair := range pairs {
		at := nodePlace(pair)
		if pair.Key == nil || pair.Key.IsMergeKey() {
			d.add(at, "merge keys (<<) are not supported; use vars, profiles or procedures for what is common")
			continue
		}
		key, ok := scalar(pair.Key)
		if !ok {
			d.add(at, "a key must be a plain string")
			continue
		}
		if first, twice := seen[key]; twice {
			d.add(at, "the key %q appears twice; first in line %d", key, first.line)
			continue
		}
		seen[key] = at
		if pair.Value == nil || pair.Value.Type() == ast.NullType {
			d.add(at, "the key %q has no value; give it one or remove it", key)
			continue
		}
		visit(key, at, pair.Value)
	}
	return true
}

// scalar returns the text of a string, number or boolean as it is written.
func scalar(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		if n.Value == nil {
			return "", true
		}
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func (d *decoder) mistyped(node ast.Node, wanted string) {
	d.add(nodePlace(node), "this is %s; write %s", describe(node), wanted)
}

func describe(node ast.Node) string {
	switch node.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	case ast.StringType, ast.LiteralType:
		return "a string"
	case ast.IntegerType, ast.FloatType:
		return "a number"
	case ast.BoolType:
		return "a truth value"
	case ast.NullType:
		return "empty"
	case ast.AnchorType, ast.AliasType:
		return "an anchor or alias, which suites do not have"
	case ast.TagType:
		return "a YAML tag, which suites do not have"
	}
	return "something else"
}

func (t *text) decode(d *decoder, node ast.Node) {
	value, ok := scalar(node)
	if !ok {
		d.mistyped(node, "a string")
		return
	}
	if strings.ContainsRune(value, 0) {
		d.add(nodePlace(node), "the string has a zero byte")
		return
	}
	*t = text{value: value, at: nodePlace(node)}
}

func (v *values) decode(d *decoder, node ast.Node) {
	if list, ok := node.(*ast.SequenceNode); ok {
		v.list = true
		v.texts = texts(d, list)
		return
	}
	var one text
	one.decode(d, node)
	v.texts = []text{one}
}

func (w *words) decode(d *decoder, node ast.Node) {
	if list, ok := node.(*ast.SequenceNode); ok {
		*w = texts(d, list)
	} else if _, ok := scalar(node); ok {
		var one text
		one.decode(d, node)
		*w = words{one}
	} else {
		d.mistyped(node, "a list of strings")
	}
}

func (a *arguments) decode(d *decoder, node ast.Node) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		d.add(nodePlace(node), `this is %s; write a command as a list, such as [go, build, ./...] (for a shell: [sh, -c, "…"])`, describe(node))
		return
	}
	if *a = texts(d, list); len(*a) == 0 {
		d.add(nodePlace(node), "the command is empty")
	}
}

func texts(d *decoder, list *ast.SequenceNode) []text {
	out := make([]text, 0, len(list.Values))
	for _, item := range list.Values {
		var t text
		t.decode(d, item)
		out = append(out, t)
	}
	return out
}

func (c *count) decode(d *decoder, node ast.Node) {
	if n, ok := node.(*ast.IntegerNode); ok {
		if v, err := strconv.Atoi(n.GetToken().Value); err == nil && v >= 0 {
			*c = count{value: v, at: nodePlace(node)}
			return
		}
	}
	d.mistyped(node, "a whole number, not negative")
}

func (t *toggle) decode(d *decoder, node ast.Node) {
	n, ok := node.(*ast.BoolNode)
	if !ok {
		d.mistyped(node, "true or false")
		return
	}
	*t = toggle{value: n.Value, at: nodePlace(node)}
}

func (v *duration) decode(d *decoder, node ast.Node) {
	s, _ := scalar(node)
	value, err := time.ParseDuration(s)
	if err != nil || value <= 0 {
		d.add(nodePlace(node), "this is not a duration; write one above zero with its unit, such as 90s or 10m")
		return
	}
	*v = duration{value: value, at: nodePlace(node)}
}

func (n *named[T]) decode(d *decoder, node ast.Node) {
	*n = named[T]{}
	d.mapping(node, func(key string, at position, value ast.Node) {
		e := entry[T]{name: key, at: at}
		d.value(value, reflect.ValueOf(&e.value).Elem())
		*n = append(*n, e)
	})
}

func (r *requirement) place(at position) { r.at = at }
func (p *procedure) place(at position)   { p.at = at }
func (b *benchmark) place(at position)   { b.at = at }
func (m *measurement) place(at position) { m.at = at }
func (s *step) place(at position)        { s.at = at }
func (e *exclusion) place(at position)   { e.at = at }
