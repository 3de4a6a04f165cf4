package families

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/ops/metrics"
)

// Certificates is the source of when certificates end, by the setting that names them, and of how many are not issued yet.
func Certificates(ends map[string]func() time.Time, missing map[string]func() int) metrics.Source {
	return metrics.Source{Name: "certificates", Read: func(context.Context) (out []metrics.Sample, _ error) {
		for _, name := range slices.Sorted(maps.Keys(ends)) {
			if at := ends[name](); !at.IsZero() { // there is none yet, which the other number says
				out = append(out, metrics.CertEnds.Is(unix(at), name))
			}
			n := 0
			if count := missing[name]; count != nil { // those of files are there
				n = count()
			}
			out = append(out, metrics.CertsMissing.Is(float64(n), name))
		}
		return out, nil
	}}
}
