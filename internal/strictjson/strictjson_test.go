package strictjson_test

import (
	"encoding/json"
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
