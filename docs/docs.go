// Package docs holds those documents that the program shows itself.
package docs

import _ "embed"

// Glossary is the text of glossary.md: paragraphs that begin with a term in bold.
//
//go:embed glossary.md
var Glossary string
