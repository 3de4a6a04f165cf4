package schemas

import (
	"testing"

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
	(&Placed{Frame: Frame{Rows: 1, RawBytes: 1, Schema: 1}, Pos: 1, SourceSeq: 1, ShardRows: 1}).SetHeaders(frame)
	lane := func(subject string) bool { return subject == "docs.d.0.x" || subject == "timers.t.0.g.0.x" }
	for name, c := range map[string]struct {
		stream, subject string
		h               nats.Header
		data            string
		foreign         bool
	}{
		"frame":                       {StreamShards, "shards.app.2026-11.00000000000000aa", frame, "x", false},
		"frame of no shard":           {StreamShards, "shards.app.2026-11.aa", frame, "x", true},
		"frame of no month":           {StreamShards, "shards.app.now.00000000000000aa", frame, "x", true},
		"frame of no topic":           {StreamShards, "shards.*.2026-11.00000000000000aa", frame, "x", true},
		"no frame":                    {StreamShards, "shards.app.2026-11.00000000000000aa", nil, "x", true},
		"hidden":                      {StreamShards, "shards.app.2026-11.\x7f", frame, "x", true},
		"checkpoint":                  {StreamShards, "routed.app.0", headers(jetstream.ExpectedLastSubjSeqHeader, "1"), "{}", false},
		"checkpoint by headers":       {StreamShards, "routed.app.0", headers(jetstream.ExpectedLastSubjSeqHeader, "1"), "", false},
		"checkpoint without headers":  {StreamShards, "routed.app.0", nil, "{}", true},
		"no checkpoint, headers only": {StreamShards, "routed.app.0", nil, "", true},
		"no checkpoint":               {StreamShards, "routed.app.0", headers(jetstream.ExpectedLastSubjSeqHeader, "1"), "x", true},
		"checkpoint of no topic":      {StreamShards, "routed.APP.0", nil, "{}", true},
		"checkpoint of strays":        {StreamShards, "routed._.0123456789abcdef", headers(jetstream.ExpectedLastSubjSeqHeader, "1"), "{}", false},
		"letter":                      {StreamShards, "dead.app", headers(HeaderReason, "not-json"), "x", false},
		"letter of none":              {StreamShards, "dead._", headers(HeaderReason, ReasonForeign), "x", false},
		"letter without a reason":     {StreamShards, "dead.app", nil, "x", true},
		"letter of no topic":          {StreamShards, "dead.\x1b", headers(HeaderReason, "not-json"), "x", true},
		"parts of requests":           {StreamShards, "given.app.0", nil, string(EncodeGiven(make([]GivenPart, 3))), false},
		"parts by headers":            {StreamShards, "given.app.0", nil, "", false},
		"parts of no topic":           {StreamShards, "given.APP.0", nil, "", true},
		"no parts":                    {StreamShards, "given.app.0", nil, "x", true},
		"record":                      {StreamDocs, "docs.d.0.x", headers(HeaderOp, OpStored), "x", false},
		"record of an unknown topic":  {StreamDocs, "docs.lost.0.x", headers(HeaderOp, OpStored), "x", false},
		"stub":                        {StreamDocs, "docs.d.0.x", headers(HeaderStub, "1"), "", false},
		"blank":                       {StreamTimers, FrontBlankSubject(StreamTimers, "t"), headers(HeaderBlank, "1"), "", false},
		"no record of a lane":         {StreamDocs, "docs.d.0.x", nil, "x", false},
		"no record of no lane":        {StreamDocs, "docs.d.9.x", nil, "x", true},
		"lock":                        {StreamDocs, "doclocks.d.0.x", headers(HeaderOp, OpLocked), "", false},
		"no lock":                     {StreamDocs, "doclocks.d.0.x", nil, "x", true},
		"timer":                       {StreamTimers, "timers.t.0.g.0.x", headers(HeaderOp, "created"), "x", false},
		"no timer":                    {StreamTimers, "timers.t.0.g.0.y", nil, "x", true},
	} {
		var data []byte
		if c.data != "" {
			data = []byte(c.data)
		}
		if err := Foreign(c.stream, c.subject, c.h, data, lane); (err != nil) != c.foreign {
			t.Errorf("%s: %v, want foreign: %v", name, err, c.foreign)
		}
	}
}
