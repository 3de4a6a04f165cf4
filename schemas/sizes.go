package schemas

import (
	"fmt"
	"strings"
)

// FormatBytes writes a size as people read it: 1.5 MiB.
func FormatBytes(n float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB", "TiB"} {
		if n < 1000 || unit == "TiB" {
			digits := strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
			if n >= 100 {
				digits = fmt.Sprintf("%.0f", n)
			}
			return digits + " " + unit
		}
		n /= 1024
	}
	return ""
}
