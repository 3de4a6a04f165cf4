package families

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/ops/metrics"
)

// Certificates is the source of when certificates end, by the setting that names them.
func Certificates(ends map[string]func() time.Time) metrics.Source {
	return metrics.Source{Name: "certificates", Read: func(context.Context) (out []metrics.Sample, _ error) {
		for name, end := range ends {
			out = append(out, metrics.CertEnds.Is(unix(end()), name))
		}
		return out, nil
	}}
}
