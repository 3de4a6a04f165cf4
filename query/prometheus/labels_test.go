package prometheus

import (
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/almanac-events/almanac/query/series"
)

func TestLabelsOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    series.Series
		want string
	}{
		"columns":                 {series.Series{Metric: "m", Service: "api", Tenant: "u"}, `{__name__="m", service="api", user_id="u"}`},
		"attributes in their way": {series.Series{Metric: "m", Service: "api", Labels: map[string]string{"service": "a"}}, `{__name__="m", exported_service="a", service="api"}`},
		"attributes alone":        {series.Series{Metric: "m", Labels: map[string]string{"service": "a", "user_id": "b"}}, `{__name__="m", service="a", user_id="b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := labelsOf(&c.s, labels.NewBuilder(labels.EmptyLabels())).String(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
