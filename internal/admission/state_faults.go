package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// faults collects the faults of a file.
type faults struct {
	list []error
	more int
}

// add notes a fault of an entry's field; either name may be empty.
func (f *faults) add(entry, field, problem string) {
	if len(f.list) == maxReported {
		f.more++
		return
	}
	var names []string
	for _, name := range []string{entry, field} {
		if name != "" {
			names = append(names, name)
		}
	}
	f.list = append(f.list, fmt.Errorf("%s: %s", strings.Join(names, "."), problem))
}

func (f *faults) err() error {
	if f.more > 0 {
		return errors.Join(append(slices.Clip(f.list), fmt.Errorf("and %d more", f.more))...)
	}
	return errors.Join(f.list...)
}

// object reads a JSON object's fields; nil for any other value. Fields that are unknown or given twice are faults.
func (f *faults) object(entry string, raw json.RawMessage, known ...string) map[string]json.RawMessage {
	what := entry
	if what == "" {
		what = "the file"
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		f.add(what, "", shown(raw)+" is no object")
		return nil
	}
	fields := make(map[string]json.RawMessage, len(known))
	for decoder.More() {
		token, err := decoder.Token()
		name, isName := token.(string)
		var value json.RawMessage
		if err != nil || !isName || decoder.Decode(&value) != nil {
			f.add(what, "", "is no object") // cannot happen if the syntax was checked
			return nil
		}
		switch _, twice := fields[name]; {
		case !slices.Contains(known, name):
			f.add(entry, shown(json.RawMessage(name)), "is an unknown field; use "+strings.Join(known, ", "))
		case twice:
			f.add(entry, name, "is given twice")
		default:
			fields[name] = value
		}
	}
	return fields
}

// array reads a JSON array; nil when there is none.
func (f *faults) array(field string, raw json.RawMessage) []json.RawMessage {
	if isNull(raw) {
		return nil
	}
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		f.add("", field, shown(raw)+" is no list")
	}
	return elements
}
