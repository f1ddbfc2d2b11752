package pages

import (
	"regexp"
	"strings"
	"sync"

	"github.com/benchloom/benchloom/docs"
)

func (p *Pages) helpPages() []page {
	return []page{{pattern: "/help", parameters: []string{searchParameter}, show: p.help}}
}

type helpView struct {
	Search string
	Keys   []key
	// ChartKeys work in a drawing that has the focus.
	ChartKeys []chartKey
	States    []string
	Words     []word
	// Total is the number of all words.
	Total int
}

// key is the access key of a page.
type key struct {
	Key string
	link
}

// chartKey is a key, or several with the same effect, with that effect.
type chartKey struct {
	Keys   []string
	Effect string
}

// chartKeys are the keys that the module chart.js knows.
var chartKeys = []chartKey{
	{[]string{"←", "→", "Home", "End"}, "go to another point"},
	{[]string{"Shift"}, "with one of these: mark the part from here"},
	{[]string{"Enter"}, "zoom to the part that is marked, else compare the point with the one before it, or with the pinned one"},
	{[]string{"p"}, "pin the point, or release it"},
	{[]string{"Escape"}, "close what is told"},
}

// accessKeys are the access keys of the entries of the navigation, by address. Browsers require
// further keys with them, so they get in the way of nothing.
var accessKeys = map[string]string{"/": "o", "/queues": "q", "/collectors": "c", "/sizeclasses": "s", "/audit": "a", "/help": "h"}

// word is a term with its meaning.
type word struct {
	ID, Term string
	Text     []phrase
}

// phrase is a part of a meaning in one style.
type phrase struct {
	Text         string
	Code, Strong bool
}

// shownStates has a state of each style.
var shownStates = []string{"success", "failure", "in_progress", "queued", "lost", "cancelled"}

// help explains keys, signs and words.
func (p *Pages) help(v *visit) (*view, error) {
	shown := helpView{Search: v.get(searchParameter), ChartKeys: chartKeys, States: shownStates, Total: len(glossary())}
	for _, a := range areas {
		shown.Keys = append(shown.Keys, key{accessKeys[a.Href], a})
	}
	for _, w := range glossary() {
		if matches(v, append([]string{w.Term}, plain(w.Text))...) {
			shown.Words = append(shown.Words, w)
		}
	}
	return &view{template: "help", Title: "Help", Area: "/help", Content: shown}, nil
}

// plain returns the text of phrases.
func plain(text []phrase) string {
	var b strings.Builder
	for _, part := range text {
		b.WriteString(part.Text)
	}
	return b.String()
}

// glossary has the words of the documentation.
var glossary = sync.OnceValue(func() []word { return readGlossary(docs.Glossary) })

var (
	// documentLinks matches links to documents, which are not served here: what remains
	// is their text.
	documentLinks = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// seeDocuments matches sentences that only refer to a document.
	seeDocuments = regexp.MustCompile(`\s*(; see|See|, see)( the table in)? \[[^\]]*\]\([^)]*\)`)
	phrases      = regexp.MustCompile("`[^`]*`|\\*[^*]+\\*")
	idParts      = regexp.MustCompile(`[^a-z0-9]+`)
)

// readGlossary reads the terms of a glossary: paragraphs of Markdown that begin with a term in
// bold. Other paragraphs are left out.
func readGlossary(text string) []word {
	var words []word
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		line := strings.Join(strings.Fields(paragraph), " ")
		term, meaning, ok := strings.Cut(strings.TrimPrefix(line, "**"), ".** ")
		if !ok || !strings.HasPrefix(line, "**") {
			continue
		}
		term = strings.ReplaceAll(term, "`", "")
		id := "w-" + strings.Trim(idParts.ReplaceAllString(strings.ToLower(term), "-"), "-")
		words = append(words, word{ID: id, Term: term, Text: phrasesOf(meaning)})
	}
	return words
}

// phrasesOf divides a meaning by its styles, without references to documents.
func phrasesOf(meaning string) []phrase {
	meaning = strings.ReplaceAll(seeDocuments.ReplaceAllString(meaning, ""), "..", ".")
	meaning = strings.TrimSuffix(documentLinks.ReplaceAllString(meaning, "$1"), " .")
	var out []phrase
	add := func(part phrase) {
		if part.Text != "" {
			out = append(out, part)
		}
	}
	at := 0
	for _, found := range phrases.FindAllStringIndex(meaning, -1) {
		add(phrase{Text: meaning[at:found[0]]})
		styled := meaning[found[0]:found[1]]
		add(phrase{Text: styled[1 : len(styled)-1], Code: styled[0] == '`', Strong: styled[0] == '*'})
		at = found[1]
	}
	add(phrase{Text: meaning[at:]})
	return out
}
