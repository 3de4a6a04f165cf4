package erasure

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Sums tell apart what they have columns of, over all of a shard's time.
func TestReaches(t *testing.T) {
	t.Parallel()
	topic, err := schemas.Topic{Name: "usage", Kind: kinds.Meter}.Declared()
	if err != nil {
		t.Fatal(err)
	}
	day := 24 * time.Hour
	shard := &registry.Shard{MinTs: noon.UnixNano(), MaxTs: noon.Add(10 * day).UnixNano()}
	for name, c := range map[string]struct {
		req  Request
		want bool
	}{
		"a user":                {Request{Users: []string{"u"}}, true},
		"a space of a provider": {Request{Where: "space = 's' AND (provider = 'p' OR NOT type IN ('a', 'b'))"}, true},
		"all of its time":       {Request{From: noon, To: noon.Add(10*day + 1)}, true},
		"a user, from within":   {Request{Users: []string{"u"}, From: noon.Add(1)}, false},
		"a user, to within":     {Request{Users: []string{"u"}, To: noon.Add(10 * day)}, false},
		"a cause":               {Request{Where: "cause = 'c'"}, false},
		"a user and a cause":    {Request{Users: []string{"u"}, Where: "cause = 'c'"}, false},
		"a label":               {Request{Where: "attributes.plan = 'free'"}, false},
		"a delta":               {Request{Where: "delta > 0"}, false},
		"a level":               {Request{Users: []string{"u"}, Where: "level = 'error'"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.req.Topic = "usage"
			e, err := compile(c.req, &topic, noon)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := reaches(&e, shard); got != c.want {
				t.Errorf("%s: %t, want %t; it names %q", name, got, c.want, e.Columns())
			}
		})
	}
}
