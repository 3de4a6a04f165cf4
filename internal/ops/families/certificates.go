package families

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/ops/metrics"
)

// Certificates is the source of when certificates end, by the setting that names them, and of how many are not issued yet.
func Certificates(ends map[string]func() time.Time, missing map[string]func() int) metrics.Source {
	return metrics.Source{Name: "certificates", Read: func(context.Context) (out []metrics.Sample, _ error) {
		for name, end := range ends {
			if at := end(); !at.IsZero() { // there is none yet, which the other number says
				out = append(out, metrics.CertEnds.Is(unix(at), name))
			}
		}
		for name, n := range missing {
			out = append(out, metrics.CertsMissing.Is(float64(n()), name))
		}
		return out, nil
	}}
}
