package suite

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write suite.schema.json anew")

func TestTheCommittedSchemaIsUpToDate(t *testing.T) {
	t.Parallel()
	schema, err := generateSchema()
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("suite.schema.json", schema, 0o644))
		return
	}
	require.Equal(t, string(schema), string(Schema()), "run go test ./internal/suite -run Schema -update")
}

// generateSchema generates the JSON Schema from the types that the loader
// reads.
func generateSchema() ([]byte, error) {
	reflector := &jsonschema.Reflector{
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true,
		ExpandedStruct:             true,
		Anonymous:                  true,
		Mapper:                     schemaOf,
		LookupComment: func(t reflect.Type, field string) string {
			if t.Kind() != reflect.Struct {
				return ""
			}
			f, _ := t.FieldByName(field)
			return f.Tag.Get("doc")
		},
	}
	schema := reflector.Reflect(&document{})
	schema.Title = "Benchloom suite"
	schema.Description = "How benchmarks are prepared and measured: the file " + FileName + " of a suite."
	// Types that occur only in mappings are referenced but not found.
	for _, t := range []any{parameter{}, scenario{}, namedSelection{}, profiler{}} {
		for name, definition := range reflector.Reflect(t).Definitions {
			schema.Definitions[name] = definition
		}
		name := reflect.TypeOf(t).Name()
		definition := reflector.Reflect(t)
		definition.Version, definition.Definitions = "", nil
		schema.Definitions[name] = definition
	}
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the JSON Schema: %w", err)
	}
	return append(data, '\n'), nil
}

const durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

// schemaOf returns the schema of types that are not written as their Go kind;
// nil for all others.
func schemaOf(t reflect.Type) *jsonschema.Schema {
	scalar := func() *jsonschema.Schema {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
	}
	list := func() *jsonschema.Schema { return &jsonschema.Schema{Type: "array", Items: scalar()} }
	switch t {
	case reflect.TypeFor[text]():
		return &jsonschema.Schema{Type: "string"}
	case reflect.TypeFor[values](), reflect.TypeFor[words]():
		return &jsonschema.Schema{AnyOf: append(scalar().AnyOf, list())}
	case reflect.TypeFor[arguments]():
		command := list()
		least := uint64(1)
		command.MinItems = &least
		return command
	case reflect.TypeFor[count]():
		return &jsonschema.Schema{Type: "integer", Minimum: "0"}
	case reflect.TypeFor[toggle]():
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.TypeFor[duration]():
		return &jsonschema.Schema{Type: "string", Pattern: durationPattern}
	case reflect.TypeFor[named[text]]():
		return &jsonschema.Schema{Type: "object", AdditionalProperties: scalar()}
	case reflect.TypeFor[named[values]](), reflect.TypeFor[named[setting]]():
		return &jsonschema.Schema{Type: "object", AdditionalProperties: schemaOf(reflect.TypeFor[values]())}
	}
	if element, ok := mappedType(t); ok {
		return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Ref: "#/$defs/" + element}}
	}
	return nil
}

// mappedType returns the name of T for a named[T].
func mappedType(t reflect.Type) (string, bool) {
	if t.Kind() != reflect.Slice || !strings.HasPrefix(t.Name(), "named[") {
		return "", false
	}
	value, ok := t.Elem().FieldByName("value")
	return value.Type.Name(), ok
}
