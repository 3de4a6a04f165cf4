package wire

import (
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestForeign(t *testing.T) {
	t.Parallel()
	headers := func(pairs ...string) nats.Header {
		h := nats.Header{}
		for i := 0; i+1 < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	frame := nats.Header{}
	(&schemas.Placed{Frame: schemas.Frame{Rows: 1, RawBytes: 1, Schema: 1}, Pos: 1, SourceSeq: 1, ShardRows: 1}).SetHeaders(frame)
	lane := func(subject string) bool { return subject == "docs.d.0.x" || subject == "timers.t.0.g.0.x" }
	for name, c := range map[string]struct {
		stream, subject string
		h               nats.Header
		data            string
		foreign         bool
	}{
		"frame":                       {schemas.StreamShards, "shards.app.2026-11.00000000000000aa", frame, "x", false},
		"frame of no shard":           {schemas.StreamShards, "shards.app.2026-11.aa", frame, "x", true},
		"frame of no month":           {schemas.StreamShards, "shards.app.now.00000000000000aa", frame, "x", true},
		"frame of no topic":           {schemas.StreamShards, "shards.*.2026-11.00000000000000aa", frame, "x", true},
		"no frame":                    {schemas.StreamShards, "shards.app.2026-11.00000000000000aa", nil, "x", true},
		"hidden":                      {schemas.StreamShards, "shards.app.2026-11.\x7f", frame, "x", true},
		"checkpoint":                  {schemas.StreamShards, "routed.app.0", headers(jetstream.ExpectedLastSubjSeqHeader, "1"), "{}", false},
		"checkpoint by headers":       {schemas.StreamShards, "routed.app.0", headers(jetstream.ExpectedLastSubjSeqHeader, "1"), "", false},
		"checkpoint without headers":  {schemas.StreamShards, "routed.app.0", nil, "{}", true},
		"no checkpoint, headers only": {schemas.StreamShards, "routed.app.0", nil, "", true},
		"no checkpoint":               {schemas.StreamShards, "routed.app.0", headers(jetstream.ExpectedLastSubjSeqHeader, "1"), "x", true},
		"checkpoint of no topic":      {schemas.StreamShards, "routed.APP.0", nil, "{}", true},
		"checkpoint of strays":        {schemas.StreamShards, "routed._.0123456789abcdef", headers(jetstream.ExpectedLastSubjSeqHeader, "1"), "{}", false},
		"letter":                      {schemas.StreamShards, "dead.app", headers(schemas.HeaderReason, "not-json"), "x", false},
		"letter of none":              {schemas.StreamShards, "dead._", headers(schemas.HeaderReason, ReasonForeign), "x", false},
		"letter without a reason":     {schemas.StreamShards, "dead.app", nil, "x", true},
		"letter of no topic":          {schemas.StreamShards, "dead.\x1b", headers(schemas.HeaderReason, "not-json"), "x", true},
		"parts of requests":           {schemas.StreamShards, "given.app.0", nil, string(schemas.EncodeGiven(make([]schemas.GivenPart, 3))), false},
		"parts by headers":            {schemas.StreamShards, "given.app.0", nil, "", false},
		"parts of no topic":           {schemas.StreamShards, "given.APP.0", nil, "", true},
		"no parts":                    {schemas.StreamShards, "given.app.0", nil, "x", true},
		"record":                      {schemas.StreamDocs, "docs.d.0.x", headers(schemas.HeaderOp, schemas.OpStored), "x", false},
		"record of an unknown topic":  {schemas.StreamDocs, "docs.lost.0.x", headers(schemas.HeaderOp, schemas.OpStored), "x", false},
		"stub":                        {schemas.StreamDocs, "docs.d.0.x", headers(schemas.HeaderStub, "1"), "", false},
		"blank":                       {schemas.StreamTimers, schemas.FrontBlankSubject(schemas.StreamTimers, "t"), headers(schemas.HeaderBlank, "1"), "", false},
		"no record of a lane":         {schemas.StreamDocs, "docs.d.0.x", nil, "x", false},
		"no record of no lane":        {schemas.StreamDocs, "docs.d.9.x", nil, "x", true},
		"lock":                        {schemas.StreamDocs, "doclocks.d.0.x", headers(schemas.HeaderOp, schemas.OpLocked), "", false},
		"no lock":                     {schemas.StreamDocs, "doclocks.d.0.x", nil, "x", true},
		"timer":                       {schemas.StreamTimers, "timers.t.0.g.0.x", headers(schemas.HeaderOp, "created"), "x", false},
		"no timer":                    {schemas.StreamTimers, "timers.t.0.g.0.y", nil, "x", true},
	} {
		t.Run(name, func(t *testing.T) {
			var data []byte
			if c.data != "" {
				data = []byte(c.data)
			}
			if err := Foreign(c.stream, c.subject, c.h, data, lane); (err != nil) != c.foreign {
				t.Errorf("%s: %v, want foreign: %v", name, err, c.foreign)
			}
		})
	}
}
