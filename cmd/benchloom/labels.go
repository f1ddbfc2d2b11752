package main

import (
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// labelValues reads labels, of which each has one value: another one for the same
// label would silently replace it.
type labelValues struct {
	labels *map[string]string
}

// labelFlag adds a flag for labels, which is repeatable and takes several with
// commas.
func labelFlag(flags *pflag.FlagSet, to *map[string]string, name, help string) {
	flags.Var(labelValues{to}, name, help)
}

// Set adds labels.
func (v labelValues) Set(text string) error {
	pairs := []string{text}
	if strings.Count(text, "=") != 1 {
		var err error
		if pairs, err = csv.NewReader(strings.NewReader(text)).Read(); err != nil {
			return fmt.Errorf("%q is no label; write one such as rack=2", text)
		}
	}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%q is no label; write one such as rack=2", pair)
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
