package bench

import (
	"fmt"
	"math"
)

// Point is a cost at a size.
type Point struct {
	Size float64 `json:"size"`
	Cost float64 `json:"cost"`
}

// Fit are a and b of the cost = a · size^b that fits the points best: least
// squares over the logarithms. NaN of fewer than two sizes.
func Fit(points []Point) (a, b float64) {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		if p.Size <= 0 || p.Cost <= 0 {
			continue
		}
		x, y := math.Log(p.Size), math.Log(p.Cost)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if d := n*sxx - sx*sx; n >= 2 && d > 1e-9 {
		b = (n*sxy - sx*sy) / d
		return math.Exp((sy - b*sx) / n), b
	}
	return math.NaN(), math.NaN()
}

// constantSlope and linearSlope are how far measured exponents of costs that do
// not grow, or grow with the size, stray: noise of a fifth over two decades.
const (
	constantSlope = 0.1
	linearSlope   = 0.9
)

// Order is a slope in words.
func Order(slope float64) string {
	switch {
	case math.IsNaN(slope):
		return "not known"
	case slope < -constantSlope:
		return fmt.Sprintf("falls, n^%.2f", slope)
	case slope <= constantSlope:
		return fmt.Sprintf("constant, n^%.2f", slope)
	case slope < linearSlope:
		return fmt.Sprintf("less than linear, n^%.2f", slope)
	case slope <= 2-linearSlope:
		return fmt.Sprintf("linear, n^%.2f", slope)
	}
	return fmt.Sprintf("more than linear, n^%.2f", slope)
}
