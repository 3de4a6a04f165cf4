package rawjson

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

var (
	meterTopic = schemas.NewTopicOf(kinds.Meter, "usage", schemas.Field{Name: "region", Type: schemas.TypeLowCardinality})
	atNoon     = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

func TestMeterAliases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ line, want string }{
		"CloudEvents": {`{"specversion":"1.0","type":"bytes","source":"//gw/1","id":"a-1","subject":"s1","time":"2026-11-20T12:00:00Z","data":{"value":7,"user_id":"cust"}}`,
			"bytes cust s1 //gw/1 a-1 7"},
		"CloudEvents with a UUID": {`{"specversion":"1.0","type":"bytes","source":"gw","id":"0193a1b2-0000-7000-8000-000000000001","subject":"s1","data":{"delta":-3}}`,
			"bytes  s1 gw 0193a1b2-0000-7000-8000-000000000001 -3"},
		"Stripe":             {`{"event_name":"tokens","timestamp":1763640000,"identifier":"id-9","payload":{"stripe_customer_id":"cus_1","value":"25"}}`, "tokens cus_1 cus_1 id-9 25"},
		"own names win":      {`{"specversion":"1.0","source":"gw","id":"x","subject":"other","space":"s","cause":"c","delta":1}`, "  s c 1"},
		"neither of the two": {`{"source":"gw","id":"x","space":"s","cause":"c","delta":1}`, "  s c 1"},
	} {
		t.Run(name, func(t *testing.T) {
			keys := Keys{Topic: &meterTopic}
			e, err := keys.Parse([]byte(c.line))
			if err == nil {
				err = meterTopic.Check(&e, atNoon.UnixNano(), atNoon.UnixNano())
			}
			if err != nil {
				t.Fatal(err)
			}
			texts := []string{e.Type, e.UserID}
			for _, column := range []string{"space", "cause", "delta"} {
				i := slices.IndexFunc(e.Attrs, func(a schemas.Attr) bool { return a.Key == column })
				texts = append(texts, e.Attrs[i].Text())
			}
			if got := strings.Join(texts, " "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
