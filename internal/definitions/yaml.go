package definitions

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Some inputs take the YAML library quadratic time.
const (
	maxDocument = 256 << 10 // bytes of one file
	maxOpen     = 500       // brackets and braces that are open at once
)

// kind is the kind of a YAML value.
type kind int

const (
	textual kind = iota
	number
	boolean
	listing
	mapping
)

func (k kind) String() string {
	return [...]string{"a string", "a number", "a truth value", "a list", "a mapping"}[k]
}

// value is a YAML value with its place.
type value struct {
	kind kind
	at   position
	// text holds a scalar as it is written.
	text string
	// exact is set if each character of text stands in the file as it is: the text begins that
	// many columns after at. 0 if it does not.
	exact int
	list  []*value
	pairs []pair
	// parts divide a text, and wrong is the reason for having none: a condition may hold
	// dollar signs that begin no variable.
	parts []part
	wrong string
	// holes is set if the value or one below has variables.
	holes bool
}

// pair is a key of a mapping with its value.
type pair struct {
	key   string
	at    position
	value *value
}

// whole returns the variable that stands for the whole value; empty if none does.
func (v *value) whole() string {
	if len(v.parts) == 1 {
		return v.parts[0].name
	}
	return ""
}

// parse reads the only document of a file; nil if it has problems.
func parse(file string, data []byte, ps *problems) *value {
	begin := position{file, 1, 1}
	if len(data) > maxDocument {
		ps.add(begin, "the file has %d bytes; at most %d are read: divide it", len(data), maxDocument)
		return nil
	}
	if !utf8.Valid(data) {
		ps.add(begin, "the file is not UTF-8")
		return nil
	}
	if at, deep := tooManyOpen(file, data); deep {
		ps.add(at, "more than %d brackets are open here; close them", maxOpen)
		return nil
	}
	body, at, err := document(file, data)
	if err != nil {
		ps.add(at, "%v", err)
		return nil
	}
	if body == nil {
		ps.add(begin, "the file is empty; remove it, or define something")
		return nil
	}
	before := len(ps.list)
	v := (&reader{file, ps}).value(body)
	if len(ps.list) > before {
		return nil
	}
	return v
}

// tooManyOpen returns the place at which brackets, even in strings, are nested too deeply.
func tooManyOpen(file string, data []byte) (position, bool) {
	at, open := position{file, 1, 0}, 0
	for _, c := range data {
		at.column++
		switch c {
		case '\n':
			at = position{file, at.line + 1, 0}
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

// document returns the root of the file's only document. The text is untrusted: a panic of
// the YAML library is a syntax error.
func document(file string, data []byte) (body ast.Node, at position, err error) {
	at = position{file, 1, 1}
	defer func() {
		if r := recover(); r != nil {
			body, err = nil, fmt.Errorf("this is not YAML: %v", r)
		}
	}()
	parsed, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		message := err.Error()
		if located, ok := errors.AsType[yaml.Error](err); ok {
			message, at = located.GetMessage(), place(file, located.GetToken())
		}
		return nil, at, errors.New("this is not YAML: " + message)
	}
	for i, doc := range parsed.Docs {
		if i > 0 && doc.Body != nil {
			return nil, place(file, doc.Body.GetToken()), errors.New("a second YAML document; write one")
		}
		if i == 0 {
			body = doc.Body
		}
	}
	return body, at, nil
}

func place(file string, t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{file, 1, 1}
	}
	return position{file, t.Position.Line, t.Position.Column}
}

// reader turns YAML nodes into values.
type reader struct {
	file string
	*problems
}

// start returns the start of a node. The token of a mapping is its first colon, which does
// not help a reader.
func (r *reader) start(node ast.Node) position {
	switch n := node.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return r.start(n.Values[0])
		}
		return place(r.file, n.Start)
	case *ast.MappingValueNode:
		if n.Key != nil {
			return place(r.file, n.Key.GetToken())
		}
	}
	return place(r.file, node.GetToken())
}

func (r *reader) value(node ast.Node) *value {
	v := &value{at: r.start(node)}
	switch n := node.(type) {
	case *ast.MappingNode:
		v.kind = mapping
		r.pairs(n.Values, v)
	case *ast.MappingValueNode:
		v.kind = mapping
		r.pairs([]*ast.MappingValueNode{n}, v)
	case *ast.SequenceNode:
		v.kind = listing
		for _, item := range n.Values {
			if item == nil || item.Type() == ast.NullType {
				r.add(v.at, "an entry of the list is empty; give it a value or remove it")
				continue
			}
			below := r.value(item)
			v.list, v.holes = append(v.list, below), v.holes || below.holes
		}
	case *ast.StringNode:
		v.text = n.Value
		r.textual(v, n.GetToken())
	case *ast.LiteralNode:
		if n.Value != nil {
			v.text = n.Value.Value
		}
		r.textual(v, nil)
	case *ast.IntegerNode, *ast.FloatNode:
		v.kind, v.text = number, n.GetToken().Value
	case *ast.BoolNode:
		v.kind, v.text = boolean, n.GetToken().Value
	case *ast.TagNode:
		r.add(v.at, "a value cannot begin with '!' (a YAML tag); write it in quotation marks")
	case *ast.AnchorNode, *ast.AliasNode:
		r.add(v.at, "anchors and aliases are not supported; use a job template with parameters for what is common")
	default:
		r.add(v.at, "this has no value that could be used here; write a string, a number, true, false, a list or a mapping")
	}
	return v
}

// textual finds the variables of a text.
func (r *reader) textual(v *value, t *token.Token) {
	if strings.ContainsRune(v.text, 0) {
		r.add(v.at, "the string has a zero byte")
	}
	if t != nil && !strings.Contains(v.text, "\n") {
		switch t.Type {
		case token.StringType:
			v.exact = 1
		case token.SingleQuoteType, token.DoubleQuoteType:
			if !strings.ContainsAny(v.text, `\'"`) {
				v.exact = 2
			}
		}
	}
	var err error
	if v.parts, err = split(v.text); err != nil {
		v.wrong, v.holes = err.Error(), true
	}
	for _, p := range v.parts {
		v.holes = v.holes || p.name != ""
	}
}

func (r *reader) pairs(nodes []*ast.MappingValueNode, v *value) {
	seen := make(map[string]position)
	for _, n := range nodes {
		at := r.start(n)
		if n.Key == nil || n.Key.IsMergeKey() {
			r.add(at, "merge keys (<<) are not supported; use a job template with parameters for what is common")
			continue
		}
		var key string
		switch k := n.Key.(type) {
		case *ast.StringNode:
			key = k.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			key = k.GetToken().Value
		default:
			r.add(at, "a key must be a plain string")
			continue
		}
		if first, twice := seen[key]; twice {
			r.add(at, "the key %q appears twice; first in line %d", key, first.line)
			continue
		}
		seen[key] = at
		if n.Value == nil || n.Value.Type() == ast.NullType {
			r.add(at, "the key %q has no value; give it one or remove it", key)
			continue
		}
		below := r.value(n.Value)
		v.pairs, v.holes = append(v.pairs, pair{key, at, below}), v.holes || below.holes
	}
}
