package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The plot's size and margins, in pixels.
const (
	plotWidth, plotHeight = 480, 300
	plotLeft, plotRight   = 70, 20
	plotTop, plotBottom   = 40, 50
)

// Plot is the curve as an SVG with two logarithmic axes, where a power of the
// size is a straight line: its points, and the line that fits them, dashed. Its
// colours are legible on white and on black.
func (c Curve) Plot() string {
	var fit []Point // the ends of the line, when there is one
	if c.Factor > 0 {
		for _, size := range c.ends() {
			fit = append(fit, Point{size, c.Factor * math.Pow(size, c.Slope)})
		}
	}
	drawn := append(slices.Clone(c.Points), fit...)
	x, y := newScale(drawn, func(p Point) float64 { return p.Size }), newScale(drawn, func(p Point) float64 { return p.Cost })
	px := func(v float64) float64 { return plotLeft + x.at(v)*(plotWidth-plotLeft-plotRight) }
	py := func(v float64) float64 { return plotHeight - plotBottom - y.at(v)*(plotHeight-plotTop-plotBottom) }
	var b strings.Builder
	text := func(x, y float64, anchor, extra, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>`+"\n", x, y, anchor, extra, escapeXML(s))
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" fill="#808080">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight)
	for _, v := range x.ticks() {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#808080" stroke-opacity="0.3"/>`+"\n", px(v), plotTop, px(v), plotHeight-plotBottom)
		text(px(v), plotHeight-plotBottom+18, "middle", "", short(v))
	}
	for _, v := range y.ticks() {
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#808080" stroke-opacity="0.3"/>`+"\n", plotLeft, py(v), plotWidth-plotRight, py(v))
		text(plotLeft-8, py(v)+4, "end", "", short(v))
	}
	text(plotWidth/2, 18, "middle", ` font-weight="bold"`, c.What)
	text(plotWidth/2, 34, "middle", "", c.Order)
	text(plotWidth/2, plotHeight-12, "middle", "", c.Over)
	middle := float64(plotTop+plotHeight-plotBottom) / 2
	text(16, middle, "middle", fmt.Sprintf(` transform="rotate(-90 16 %.1f)"`, middle), c.Unit)
	if len(fit) > 0 {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e2702a" stroke-width="2" stroke-dasharray="6 4"><title>%s</title></line>`+"\n",
			px(fit[0].Size), py(fit[0].Cost), px(fit[1].Size), py(fit[1].Cost), escapeXML(fmt.Sprintf("%s · n^%.2f", short(c.Factor), c.Slope)))
	}
	for _, p := range c.Points {
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="4" fill="#2a7ae2"><title>%s: %s %s</title></circle>`+"\n", px(p.Size), py(p.Cost), short(p.Size), short(p.Cost), escapeXML(c.Unit))
	}
	return b.String() + "</svg>\n"
}

// ends are the least and the greatest size.
func (c Curve) ends() [2]float64 {
	first, last := math.Inf(1), math.Inf(-1)
	for _, p := range c.Points {
		first, last = min(first, p.Size), max(last, p.Size)
	}
	return [2]float64{first, last}
}

// scale is a logarithmic axis.
type scale struct{ lo, hi float64 } // powers of ten

// newScale covers the values, and at least a decade: less would draw noise as if
// it were growth.
func newScale(points []Point, of func(Point) float64) scale {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, p := range points {
		if v := of(p); v > 0 {
			lo, hi = min(lo, math.Log10(v)), max(hi, math.Log10(v))
		}
	}
	if lo > hi {
		return scale{0, 1}
	}
	if d := 1 - (hi - lo); d > 0 {
		lo, hi = lo-d/2, hi+d/2
	}
	return scale{lo - 0.05, hi + 0.05}
}

// at is where a value stands: 0 at the low end, 1 at the high one.
func (s scale) at(v float64) float64 {
	return (math.Log10(max(v, 1e-12)) - s.lo) / (s.hi - s.lo)
}

// ticks are 1, 2 and 5 times the powers of ten, or the powers alone on long axes.
func (s scale) ticks() (ticks []float64) {
	steps := []float64{1, 2, 5}
	if s.hi-s.lo > 2 {
		steps = steps[:1]
	}
	for e := math.Floor(s.lo); e <= s.hi; e++ {
		for _, m := range steps {
			if v := m * math.Pow(10, e); math.Log10(v) >= s.lo && math.Log10(v) <= s.hi {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

var xmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func escapeXML(s string) string { return xmlEscaper.Replace(s) }
