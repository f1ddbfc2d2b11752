package pages

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Least contrasts by WCAG 2.2: of text (success criterion 1.4.3), and of what is no text but
// must be seen (1.4.11).
const (
	contrastOfText  = 4.5
	contrastOfSigns = 3
)

var (
	pairOfColours = regexp.MustCompile(`--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);`)
	colourOfText  = regexp.MustCompile(`[;{ ]color: (?:var\(--([a-z-]+)\)|([^;}]+))`)
	background    = regexp.MustCompile(`background(?:-color)?: (?:var\(--([a-z-]+)\)|([^;}]+))`)
	signs         = regexp.MustCompile(`(?:fill|stroke|outline|accent-color): (?:\d+px solid )?var\(--([a-z-]+)\)`)
	// frames of a flame graph have text on them, and edges.
	frames    = regexp.MustCompile(`svg\.flame \.[a-z0-9-]+ rect \{ fill: var\(--([a-z0-9-]+)\); \}`)
	anyColour = regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl|oklch|lab)a?\(`)
)

// luminance is the relative luminance of a colour such as #0a4f96, by WCAG.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	parts := make([]float64, 3)
	for i := range parts {
		value, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		require.NoError(t, err)
		if c := float64(value) / 255; c <= 0.04045 {
			parts[i] = c / 12.92
		} else {
			parts[i] = math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return 0.2126*parts[0] + 0.7152*parts[1] + 0.0722*parts[2]
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func named(found [][]string) (names, others []string) {
	for _, match := range found {
		switch {
		case match[1] != "":
			names = append(names, match[1])
		case len(match) > 2 && match[2] != "":
			others = append(others, match[2])
		}
	}
	slices.Sort(names)
	slices.Sort(others)
	return slices.Compact(names), slices.Compact(others)
}

// Each colour of text can be read on each background of the style sheet, except for that of
// buttons, which has a colour of its own, in light and in dark.
func TestEachColourCanBeRead(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 21, contrast(t, "#000000", "#ffffff"), 0.001)
	text, err := assetFiles.ReadFile("assets/benchloom.css")
	require.NoError(t, err)
	css := string(text)
	colours := make(map[string][2]string)
	for _, match := range pairOfColours.FindAllStringSubmatch(css, -1) {
		colours[match[1]] = [2]string{match[2], match[3]}
	}
	require.Greater(t, len(colours), 10)
	require.Empty(t, anyColour.FindAllString(pairOfColours.ReplaceAllString(css, ""), -1), "colours have names")

	flames, _ := named(frames.FindAllStringSubmatch(css, -1))
	require.Greater(t, len(flames), 10)
	css = frames.ReplaceAllString(css, "")
	texts, otherTexts := named(colourOfText.FindAllStringSubmatch(css, -1))
	grounds, otherGrounds := named(background.FindAllStringSubmatch(css, -1))
	require.Subset(t, []string{"inherit"}, otherTexts)
	require.Subset(t, []string{"none"}, otherGrounds)
	require.NotEmpty(t, texts)
	seen, _ := named(signs.FindAllStringSubmatch(css, -1))
	check := func(name, on string, least float64) {
		require.Contains(t, colours, name)
		require.Contains(t, colours, on)
		for i, scheme := range []string{"light", "dark"} {
			got := contrast(t, colours[name][i], colours[on][i])
			require.GreaterOrEqual(t, got, least, "%s on %s, %s: %s on %s", name, on, scheme, colours[name][i], colours[on][i])
		}
	}
	for _, on := range flames {
		check("text", on, contrastOfText)
	}
	for _, on := range grounds {
		if on == "button" {
			check("on-button", on, contrastOfText)
			continue
		}
		for _, name := range texts {
			if name != "on-button" {
				check(name, on, contrastOfText)
			}
		}
		for _, name := range append(seen, "edge") {
			if !slices.Contains(grounds, name) { // such as the inside of a box: no sign
				check(name, on, contrastOfSigns)
			}
		}
	}
}
