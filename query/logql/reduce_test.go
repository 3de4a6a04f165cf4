package logql

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// What lies between an aggregation and its ranges loses no label, and without on a range takes labels away.
func TestLabelsOfSeries(t *testing.T) {
	t.Parallel()
	e := &Entry{Line: "x", Stream: map[string]string{"topic": "app", "level": "info"}, Structured: map[string]string{"host": "h", "took": "5"}}
	for src, want := range map[string]string{
		`sum by (host) (rate({}[5m]))`:                         `{host="h"}`,
		`sum by (host) (rate({}[5m]) * 60)`:                    `{host="h", level="info", topic="app"}`,
		`count by (host) (count_over_time({}[5m]) > 0)`:        `{host="h", level="info", topic="app"}`,
		`sum by (host) (topk(3, rate({}[5m])))`:                `{host="h", level="info", topic="app"}`,
		`rate({}[5m])`:                                         `{level="info", topic="app"}`,
		`max_over_time({} | unwrap took [5m]) without (level)`: `{topic="app"}`,
		`max_over_time({} | unwrap took [5m]) by (host)`:       `{host="h"}`,
		`sum without (level) (rate({}[5m]))`:                   `{level="info", topic="app"}`,
	} {
		t.Run(src, func(t *testing.T) {
			t.Parallel()
			q, err := Parse(src)
			if err != nil {
				t.Fatal(err)
			}
			x, around := ranged(q.Metric, nil)
			if got := FormatLabels(groupBy(x, around).labelsOf(fieldsOf(&topicApp, nil), e, x)); got != want {
				t.Errorf("the ranges have %s, want %s", got, want)
			}
		})
	}
}

// ranged is the range of an expression, and the aggregation that evaluation hands down to it.
func ranged(e Expr, around *VectorAggregation) (*RangeAggregation, *VectorAggregation) {
	switch x := e.(type) {
	case *RangeAggregation:
		return x, around
	case *VectorAggregation:
		return ranged(x.Inner, x.handed(around))
	case *Binary:
		if _, ok := x.L.(Number); ok {
			return ranged(x.R, named(around))
		}
		return ranged(x.L, named(around))
	}
	return nil, nil
}

// A question that looks too often ends, and so does one whose context has.
func TestLooksAreBounded(t *testing.T) {
	t.Parallel()
	ev := &evaluation{}
	if err := ev.looked(t.Context(), maxWork+1); !errors.Is(err, ErrTooMuch) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&evaluation{}).looked(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Parse("{}" + strings.Repeat(" | json", MaxStages+1)); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}
