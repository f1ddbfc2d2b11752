package suite

import _ "embed"

//go:embed suite.schema.json
var committedSchema []byte

// Schema returns the JSON Schema of suite.yaml, for editors. A test generates
// it from the types that the loader reads and compares.
func Schema() []byte { return committedSchema }
