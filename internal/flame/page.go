package flame

import (
	"fmt"
	"strings"
)

// style has the colours of a drawing that stands alone, light and dark.
const style = `
:root { color-scheme: light dark; --page: #fff; --text: #1c1e21; --edge: #fff; --hue-0: #f6c177; --hue-1: #f2a65a; --hue-2: #eebd8f; --hue-3: #f0d08a; --hue-4: #e8a87c; --hue-5: #f4b8a0; --same: #dfe1e4;
  --more-1: #f9d9d4; --more-2: #f3b2a8; --more-3: #ec8a7b; --more-4: #e4624f; --less-1: #d6e6f5; --less-2: #adcdea; --less-3: #84b3df; --less-4: #5b9ad4; }
@media (prefers-color-scheme: dark) { :root { --page: #16181b; --text: #f1f2f3; --edge: #16181b; --hue-0: #7a5520; --hue-1: #85481a; --hue-2: #6f5233; --hue-3: #6a5a22; --hue-4: #7b4a2c; --hue-5: #7c4636; --same: #3a3e44;
  --more-1: #4d2f2b; --more-2: #6d352c; --more-3: #8f3a2d; --more-4: #b0402f; --less-1: #263646; --less-2: #274a68; --less-3: #285d89; --less-4: #26669c; } }
body { margin: 1rem; background: var(--page); color: var(--text); font-family: system-ui, sans-serif; }
svg.flame { display: block; }
svg.flame text { fill: var(--text); pointer-events: none; }
svg.flame rect { stroke: var(--edge); stroke-width: .5; }
svg.flame .passed { opacity: .35; }
svg.flame .found rect { stroke: var(--text); stroke-width: 1.5; }
table { border-collapse: collapse; margin-top: 1rem; } td, th { padding: .15rem .75rem .15rem 0; text-align: right; } td:last-child, th:last-child { text-align: left; font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
`

// colours lists the classes of boxes; each has a variable of its name.
var colours = []string{
	"hue-0", "hue-1", "hue-2", "hue-3", "hue-4", "hue-5", "same",
	"more-1", "more-2", "more-3", "more-4", "less-1", "less-2", "less-3", "less-4",
}

// Page returns a page that stands alone: the drawing, a paragraph about it, and a table of
// the functions with the largest own values. It has no scripts and loads nothing.
func Page(d Drawing, about string, t Table) string {
	var out strings.Builder
	fmt.Fprintf(&out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>%s</title><style>%s", escape(d.Title), style)
	for _, c := range colours {
		fmt.Fprintf(&out, "svg.flame .%s rect { fill: var(--%[1]s); }\n", c)
	}
	fmt.Fprintf(&out, "</style></head><body><h1>%s</h1><p>%s</p>%s", escape(d.Title), escape(about), d.SVG())
	out.WriteString("<table><thead><tr><th>itself</th><th>share</th><th>with callees</th><th>share</th><th>function</th></tr></thead><tbody>")
	for _, f := range t.Functions[:min(len(t.Functions), 100)] {
		fmt.Fprintf(&out, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
			Amount(f.Self, t.Unit), percent(Share(f.Self, t.Sum)), Amount(f.Total, t.Unit), percent(Share(f.Total, t.Sum)), escape(f.Name))
	}
	out.WriteString("</tbody></table></body></html>\n")
	return out.String()
}
