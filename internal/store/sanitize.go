package store

import (
	"bytes"
	"encoding/json"
	"strings"
)

// cleanText makes a benchmark's text valid for Postgres: UTF-8 without NUL.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// cleanJSON does the same for a JSON document, in which NUL and lone surrogates, which
// jsonb refuses, hide behind escapes. Text that is not JSON stays as it is; the database
// refuses it.
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
