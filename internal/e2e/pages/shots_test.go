package pages

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/png"
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

// pictures is where the documentation has its pictures.
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
	for _, name := range []string{"request", "request-failed", "request-running", "order", "queues"} {
		b.printsOnA4(w.paths[name])
	}
}

func signedIn(name string) int {
	if name == "sign-in" {
		return 0
	}
	return 1
}

// picture returns the upper part of the page as a picture.
func (b *tab) picture(like string) []byte {
	b.t.Helper()
	highest := float64(highestWide)
	if like == "narrow" {
		highest = highestNarrow
	}
	size := ask[[]float64](b, "[document.documentElement.clientWidth, Math.ceil(document.body.getBoundingClientRect().bottom)]")
	shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		Clip: &page.Viewport{Width: size[0], Height: min(size[1], highest), Scale: 1}, CaptureBeyondViewport: new(true),
	})
	require.NoError(b.t, err)
	taken, err := png.Decode(bytes.NewReader(shot.Data))
	require.NoError(b.t, err)
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	require.NoError(b.t, encoder.Encode(&small, limited(taken)))
	return small.Bytes()
}

// limited returns a picture with 256 colours, the most frequent ones: what remains are the
// many shades of the edges of letters.
func limited(full image.Image) image.Image {
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
	slices.SortFunc(all, func(a, b color.RGBA) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return order(a) - order(b)
	})
	palette := make(color.Palette, min(256, len(all)))
	for i := range palette {
		palette[i] = all[i]
	}
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
