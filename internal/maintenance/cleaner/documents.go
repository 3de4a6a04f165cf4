package cleaner

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// documentKind: a document that is no longer hot leaves a stub, so that its id stays taken
// and compare-and-set needs no ClickHouse. A removed one leaves nothing.
var documentKind = Kind{
	Parse: parseDocument,
	Says: fmt.Sprintf("concat(%s, ' ', toString(%s), ' ', %s, ' ', toString(toUnixTimestamp64Nano(%s)), ' ', toString(length(%s)))",
		kinds.ColDocID, kinds.ColVersion, kinds.ColOp, kinds.ColCreated, kinds.ColBody),
	HotFor: func(t *schemas.Topic) time.Duration { return t.Documents.HotFor },
	Stub: func(m *streams.Message, at schemas.FrontPlace) (fronts.Record, error) {
		return documentAgain(m, func(r *document.Record) {
			// Who wrote it and whose it is are in the row: nothing of them is left to erase.
			r.Stub, r.Refresh, r.Body, r.By, r.User = &at, nil, nil, "", ""
		})
	},
	Refresh: func(m *streams.Message, at schemas.FrontPlace) (fronts.Record, error) {
		return documentAgain(m, func(r *document.Record) { r.Refresh = &at })
	},
}

func parseDocument(m *streams.Message) (Record, error) {
	r, err := document.Parse(m.Subject, m.Sequence, m.Header, m.Data, m.Size)
	if err != nil || r.Stub != nil {
		return Record{Place: r.Stub}, err
	}
	row := Row{Seq: r.RowSeq(), Ts: r.Changed, Says: fmt.Sprintf("%s %d %s %d %d", r.ID, r.Version, r.Op, r.Created, m.Size)}
	return Record{Row: &row, Over: r.Removed(), Place: r.Refresh}, nil
}

// documentAgain is a document's last record once more, changed, in place of all its records.
func documentAgain(m *streams.Message, change func(*document.Record)) (fronts.Record, error) {
	r, err := document.Parse(m.Subject, m.Sequence, m.Header, m.Data, m.Size)
	if err != nil {
		return fronts.Record{}, err
	}
	change(&r)
	h := r.Header()
	h[jetstream.MsgRollup] = []string{jetstream.MsgRollupSubject}
	return fronts.Record{Subject: m.Subject, Header: h, Data: r.Body, Expect: m.Sequence, For: fronts.End}, nil
}
