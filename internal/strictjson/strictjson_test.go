package strictjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/strictjson"
)

func TestWhatWouldBeChangedIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"a key twice":                  {`{"argv": ["true"], "argv": ["false"]}`, `the key "argv" is there twice`},
		"with the same value":          {`{"a": 1, "a": 1}`, `the key "a" is there twice`},
		"escaped":                      {`{"a": 1, "\u0061": 2}`, `the key "a" is there twice`},
		"in another case":              {`{"argv": [], "ARGV": []}`, `the key "ARGV" is there twice`},
		"deep within":                  {`{"env": {"b": {"x": [1, {"y": 1, "y": 2}]}}}`, `the key "y" is there twice`},
		"within a list":                {`[{"a": 1}, {"b": 1, "b": 2}]`, `the key "b" is there twice`},
		"after a nested object":        {`{"a": {"b": 1}, "c": [], "a": 1}`, `the key "a" is there twice`},
		"no UTF-8":                     {"{\"argv\": [\"\xff\xfe\"]}", "the byte 0xff at offset 11 is no UTF-8"},
		"half a character":             {`{"argv": ["\udcff"]}`, `\udcff at offset 11 is half a character`},
		"the first half, then another": {`["\ud83d\u0041"]`, `\ud83d at offset 2 is half a character`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.ErrorContains(t, strictjson.Check([]byte(c.text)), c.want)
		})
	}
	for _, fine := range []string{
		``, `{`, `nonsense`, `{}`, `[]`, `1`, `"a"`, `{"a": "a", "b": "a"}`, `{"a": {"a": {"a": 1}}}`, `[{"a": 1}, {"a": 1}]`, `{"env": {"A": "1", "a": "2"}}`,
		`{"a": "�"}`, `["\ud83d\ude00", "\\ud83d", "\u0041", "\"\\"]`, `{"a": [1, "a", {"a": null}], "b": true} {"a": 1, "a": 2}`,
	} {
		require.NoError(t, strictjson.Check([]byte(fine)), fine)
	}
}

// A document that passes is decoded as written: encoding and decoding it again
// gives the same.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":1,"a":2}`, `["\udcff"]`, `["\ud83d\ude00"]`, "\"\xff\"", `"\`, `"\u00`, `}`, `{]`, `{"a"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := strictjson.Check(text)
		if !utf8.Valid(text) {
			require.Error(t, err)
		}
		var words []string
		if err == nil && json.Unmarshal(text, &words) == nil {
			again, err := json.Marshal(words)
			require.NoError(t, err)
			require.NoError(t, strictjson.Check(again))
		}
	})
}

// byTokens is a simple way to find a duplicate key, which takes ten times as long.
func byTokens(text []byte) (again bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	type level struct {
		keys  map[string]bool // nil for a list
		value bool
	}
	var open []level
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		if len(open) > 0 {
			top := &open[len(open)-1]
			if key, ok := token.(string); ok && top.keys != nil && !top.value {
				if len(open) == 1 {
					key = strings.ToLower(key)
				}
				if top.keys[key] {
					return true
				}
				top.keys[key], top.value = true, true
				continue
			}
			top.value = false
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{keys: make(map[string]bool)})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
}

func FuzzDuplicateKeys(f *testing.F) {
	for _, text := range []string{
		`{"a": 1, "b": {"a": [1, "a", {"a": ",", "a": 1}]}}`, `{"a\"": "}", "a\"": "{"}`, `[{"a": "\\"}, {"a": "\""}]`, `"a"`, `{"": 1, "": 2}`, `{"Ä": 1, "ä": 2}`,
		`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":0,"p":0,"q":0,"b":0}`, `{"x":{"a":{}},"y":{"a":{}},"x":1}`, `{"a": 1`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := strictjson.Check(text); json.Valid(text) && utf8.Valid(text) && (err == nil || strings.Contains(err.Error(), "is there twice")) {
			require.Equal(t, byTokens(text), err != nil, "%q: %v", text, err)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	var text bytes.Buffer
	text.WriteByte('[')
	for i := range 1000 {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(`{"scope": "machine", "name": "memory_free", "values": [1.5, 2.25, 3e9], "batches": [0, 0, 1]}`)
	}
	text.WriteByte(']')
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if err := strictjson.Check(text.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
