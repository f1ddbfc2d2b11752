package store

import (
	"bytes"
	"encoding/json"
	"strings"
)

// cleanText makes text of a benchmark fit for Postgres, whose texts are UTF-8
// without NUL.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// cleanJSON does so for a JSON document, where these hide behind escapes: NUL and
// lone surrogates, which jsonb refuses. Anything that is no JSON stays as it is
// and is refused by the database.
func cleanJSON(raw json.RawMessage) string {
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	if !strings.Contains(text, `\u`) {
		return text
	}
	var v any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&v) != nil {
		return text
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(cleanValue(v)) != nil {
		return text
	}
	return out.String()
}

func cleanValue(v any) any {
	switch v := v.(type) {
	case string:
		return cleanText(v)
	case []any:
		for i := range v {
			v[i] = cleanValue(v[i])
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for k, e := range v {
			clean[cleanText(k)] = cleanValue(e)
		}
		return clean
	}
	return v
}
