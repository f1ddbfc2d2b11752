package sizeclass

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"time"
)

// Duration is a time.Duration that is written as text, such as "10s".
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the duration as [time.ParseDuration] reads it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what [time.ParseDuration] reads.
func (d *Duration) UnmarshalText(text []byte) error {
	read, err := time.ParseDuration(string(text))
	if err != nil {
		// The decoder adds the field to this kind of error.
		return &json.UnmarshalTypeError{Value: strconv.Quote(string(text)), Type: reflect.TypeFor[Duration]()}
	}
	*d = Duration(read)
	return nil
}

var unknownField = regexp.MustCompile(`unknown field "(.*)"`)

// NameField rewords an error of decoding JSON for people: the field, its value,
// and what is valid there.
func NameField(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		field := kind.Field
		if field == "" {
			field = "the whole"
		}
		if kind.Type == reflect.TypeFor[Duration]() {
			return fmt.Errorf("%s: %s is not a duration; write one such as \"10s\" or \"30m\"", field, kind.Value)
		}
		return fmt.Errorf("%s: %s is not what belongs there, which is %s", field, kind.Value, kinds(kind.Type))
	}
	if found := unknownField.FindStringSubmatch(err.Error()); found != nil {
		return fmt.Errorf("%s: there is no such field", found[1])
	}
	return fmt.Errorf("it is not JSON: %w", err)
}

// kinds names the JSON values that a type accepts.
func kinds(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}
