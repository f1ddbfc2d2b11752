package pages

import (
	"bytes"
	"cmp"
	"flag"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "replace the pictures of docs/images/pages")

// pictures is the folder of the documentation's pictures.
const pictures = "../../../docs/images/pages"

// Heights at which pictures are cut, in pixels.
const (
	highestWide   = 1100
	highestNarrow = 1500
)

// pictureOf matches the pictures that the documentation of pages shows, by name and look.
var pictureOf = regexp.MustCompile(`\(images/pages/([a-z-]+)-(wide|narrow|dark)\.png\)`)

// pictureLooks are the looks in which pages are pictured.
var pictureLooks = map[string]look{
	"wide":   {width: 1280, features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}},
	"narrow": {width: 390, features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}},
	"dark":   {width: 1280, features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}},
}

// Pages of a service with typical work look as their documentation shows them, and print on
// paper. With -update, the pictures are taken anew.
func TestLongTypicalPages(t *testing.T) {
	t.Parallel()
	s := ownService(t)
	w := typicalWorld(t, s)
	b := s.open(t)
	text, err := os.ReadFile("../../../docs/pages.md")
	require.NoError(t, err)
	shown := pictureOf.FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, shown)
	if *update {
		require.NoError(t, os.MkdirAll(pictures, 0o755))
	}
	// That of who is signed in already shows less.
	slices.SortStableFunc(shown, func(a, b []string) int { return signedIn(a[1]) - signedIn(b[1]) })
	for i, picture := range shown {
		name, like := picture[1], picture[2]
		require.Contains(t, w.paths, name)
		if i > 0 && signedIn(shown[i-1][1]) < signedIn(name) {
			b.signIn(s.token)
		}
		b.appear(pictureLooks[like])
		b.visit(w.paths[name])
		require.NotEmpty(t, b.text("h1"), name)
		require.False(t, ask[bool](b, "document.querySelector('[role=alert]') !== null"), "%s says: %s", w.paths[name], b.text("main"))
		file := filepath.Join(pictures, name+"-"+like+".png")
		if *update {
			require.NoError(t, os.WriteFile(file, b.picture(like), 0o644))
		}
		stored, err := os.ReadFile(file)
		require.NoError(t, err, "take it with -update")
		size, err := png.DecodeConfig(bytes.NewReader(stored))
		require.NoError(t, err, file)
		require.Equal(t, int(pictureLooks[like].width), size.Width, file)
	}
	for _, name := range []string{"request", "request-failed", "request-running", "graph", "order", "queues", "compare", "compare-rows", "compare-row", "history", "history-values"} {
		b.printsOnA4(w.paths[name])
	}
}

func signedIn(name string) int {
	if name == "sign-in" {
		return 0
	}
	return 1
}

// picture returns the upper part of the page as a picture, or what its address names, with
// what is below.
func (b *tab) picture(like string) []byte {
	b.t.Helper()
	highest := float64(highestWide)
	if like == "narrow" {
		highest = highestNarrow
	}
	const part = `[document.documentElement.clientWidth, Math.floor((document.querySelector(':target')?.getBoundingClientRect().top ?? -scrollY) + scrollY), Math.ceil(document.body.getBoundingClientRect().bottom + scrollY)]`
	size := ask[[]float64](b, part)
	width, top, bottom := size[0], size[1], size[2]
	shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		Clip: &page.Viewport{Y: top, Width: width, Height: min(bottom-top, highest), Scale: 1}, CaptureBeyondViewport: new(true),
	})
	require.NoError(b.t, err)
	taken, err := png.Decode(bytes.NewReader(shot.Data))
	require.NoError(b.t, err)
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	require.NoError(b.t, encoder.Encode(&small, limited(taken)))
	return small.Bytes()
}

// A picture keeps most colours that it has often, among them the many shades of the edges of
// letters. The others are those that differ most: a mark of few pixels stays as it is.
const (
	mostColours = 256
	oftenColour = 176
)

// limited returns a picture with 256 colours.
func limited(full image.Image) *image.Paletted {
	bounds := full.Bounds()
	counts := make(map[color.RGBA]int)
	at := func(x, y int) color.RGBA {
		return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	all := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		all = append(all, c)
	}
	order := func(c color.RGBA) int { return int(c.R)<<16 | int(c.G)<<8 | int(c.B) }
	slices.SortFunc(all, func(a, b color.RGBA) int { return cmp.Or(counts[b]-counts[a], order(a)-order(b)) })
	palette := chosen(all)
	places := make(map[color.RGBA]uint8, len(all))
	for _, c := range all {
		places[c] = uint8(palette.Index(c)) //nolint:gosec // at most 255
	}
	out := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			out.SetColorIndex(x, y, places[at(x, y)])
		}
	}
	return out
}

// chosen returns the colours to keep of those that are listed by their frequency.
func chosen(all []color.RGBA) color.Palette {
	var palette color.Palette
	off := make([]int, len(all)) // how far each is off, squared
	for i := range off {
		off[i] = math.MaxInt
	}
	for len(palette) < min(mostColours, len(all)) {
		next := len(palette)
		if next >= oftenColour {
			next = slices.Index(off, slices.Max(off))
		}
		palette = append(palette, all[next])
		for i, c := range all {
			off[i] = min(off[i], apart(c, all[next]))
		}
	}
	return palette
}

// apart is the square of the distance of two colours.
func apart(a, b color.RGBA) int {
	r, g, bl := int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B)
	return r*r + g*g + bl*bl
}

// However many shades a picture has, a mark of a few pixels keeps its colour.
func TestAPictureKeepsTheColourOfAMark(t *testing.T) {
	t.Parallel()
	const side = 64
	full := image.NewRGBA(image.Rect(0, 0, side, side))
	for x := range uint8(side) {
		for y := range uint8(side) {
			full.SetRGBA(int(x), int(y), color.RGBA{4 * x, 4 * x, 4 * y, 0xff})
		}
	}
	red := color.RGBA{0xa3, 0x16, 0x1f, 0xff}
	full.SetRGBA(10, 10, red)
	small := limited(full)
	require.Len(t, small.Palette, mostColours)
	require.Equal(t, red, small.At(10, 10))
	paper := image.NewRGBA(image.Rect(0, 0, 2, 1))
	paper.SetRGBA(0, 0, red)
	require.Len(t, limited(paper).Palette, 2)
}
