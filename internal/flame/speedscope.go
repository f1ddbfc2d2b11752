package flame

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/google/pprof/profile"
)

// speedscopeUnits translates units of pprof; other units become "none".
var speedscopeUnits = map[string]string{"nanoseconds": "nanoseconds", "microseconds": "microseconds", "milliseconds": "milliseconds", "seconds": "seconds", "bytes": "bytes"}

type speedscopeFile struct {
	Schema   string              `json:"$schema"`
	Shared   speedscopeShared    `json:"shared"`
	Profiles []speedscopeProfile `json:"profiles"`
	Name     string              `json:"name"`
	Exporter string              `json:"exporter"`
}

type speedscopeShared struct {
	Frames []speedscopeFrame `json:"frames"`
}

type speedscopeFrame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
}

type speedscopeProfile struct {
	Type       string  `json:"type"`
	Name       string  `json:"name"`
	Unit       string  `json:"unit"`
	StartValue int64   `json:"startValue"`
	EndValue   int64   `json:"endValue"`
	Samples    [][]int `json:"samples"`
	Weights    []int64 `json:"weights"`
}

// WriteSpeedscope writes JSON for speedscope (https://www.speedscope.app), with a profile for
// each sample type.
func WriteSpeedscope(w io.Writer, p *profile.Profile, name string) error {
	out := speedscopeFile{
		Schema: "https://www.speedscope.app/file-format-schema.json", Name: name, Exporter: "benchloom",
		Shared: speedscopeShared{Frames: []speedscopeFrame{}},
	}
	at := map[frame]int{}
	stacks := make([][]int, len(p.Sample))
	for n, s := range p.Sample {
		stacks[n] = []int{}
		for _, f := range outermostFirst(s) {
			f.object = ""
			i, known := at[f]
			if !known {
				i = len(out.Shared.Frames)
				at[f] = i
				out.Shared.Frames = append(out.Shared.Frames, speedscopeFrame{Name: f.name, File: f.file})
			}
			stacks[n] = append(stacks[n], i)
		}
	}
	for i, t := range p.SampleType {
		one := speedscopeProfile{Type: "sampled", Name: t.Type, Unit: "none", Samples: [][]int{}, Weights: []int64{}}
		if unit, known := speedscopeUnits[t.Unit]; known {
			one.Unit = unit
		}
		for n, s := range p.Sample {
			if v := s.Value[i]; v > 0 {
				one.Samples, one.Weights = append(one.Samples, stacks[n]), append(one.Weights, v)
				one.EndValue = sum(one.EndValue, v)
			}
		}
		out.Profiles = append(out.Profiles, one)
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		return fmt.Errorf("writing a profile for speedscope: %w", err)
	}
	return nil
}
