package main

import (
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// labelValues is a flag for labels. A second value of a label is an error: it would
// silently replace the first.
type labelValues struct {
	labels *map[string]string
}

// labelFlag adds a repeatable flag for labels, which commas may separate.
func labelFlag(flags *pflag.FlagSet, to *map[string]string, name, help string) {
	flags.Var(labelValues{to}, name, help)
}

// Set adds the labels in text.
func (v labelValues) Set(text string) error {
	pairs := []string{text}
	if strings.Count(text, "=") != 1 {
		var err error
		if pairs, err = csv.NewReader(strings.NewReader(text)).Read(); err != nil {
			return fmt.Errorf("%q is not a label; write one such as rack=2", text)
		}
	}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%q is not a label; write one such as rack=2", pair)
		}
		if former, given := (*v.labels)[name]; given && former != value {
			return fmt.Errorf("label %s is given as %q and as %q; a machine has one value of each, so leave one out", name, former, value)
		}
		if *v.labels == nil {
			*v.labels = make(map[string]string)
		}
		(*v.labels)[name] = value
	}
	return nil
}

// Type is shown in the help.
func (labelValues) Type() string { return "stringToString" }

func (v labelValues) String() string { return "" }
