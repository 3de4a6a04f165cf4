package prometheus

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/almanac-events/almanac/query/series"
)

// Matching ends with its context: a series may take milliseconds.
func TestMatchingEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := match(ctx, make([]series.Keyed, 1), []*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, "a", "x?")}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
