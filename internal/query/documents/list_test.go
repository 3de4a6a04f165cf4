package documents

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/query/once/oncetest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// rig is a topic of documents on real servers, without a router and a cleaner.
type rig struct {
	*oncetest.Rig
	*Reader
	t *testing.T
}

func newRig(t *testing.T) *rig {
	r := oncetest.New(t, schemas.NewTopicOf(kinds.Document, "customers"))
	return &rig{r, New(r.Reg, r.DB), t}
}

// put writes a record to DOCS.
func (r *rig) put(rec *document.Record) {
	r.t.Helper()
	rec.Topic, rec.Lane = r.Topic.Name, fmt.Sprint(document.Lane(&r.Topic, rec.ID))
	msg := nats.NewMsg(rec.Subject())
	msg.Header, msg.Data = rec.Header(), rec.Body
	if _, err := r.Reg.JetStream().PublishMsg(r.t.Context(), msg); err != nil {
		r.t.Fatal(err)
	}
}

// store writes a record's row to ClickHouse.
func (r *rig) store(rec *document.Record, seq uint64) {
	r.Exec(fmt.Sprintf("INSERT INTO %s (ts, id, doc_id, path, created, version, op, body, seq, month, shard, pos) VALUES (%s, generateUUIDv4(), '%s', '%s', %s, %d, '%s', '%s', %d, 202611, 7, %d)",
		sql.QuotedTable(r.DB.Database, r.Topic.Name), nanos(rec.Changed), rec.ID, rec.Path, nanos(rec.Created), rec.Version, rec.Op, rec.Body, seq, seq))
}

// lanes says of each lane up to which sequence it is stored.
func (r *rig) lanes(seq uint64) map[int]uint64 {
	out := map[int]uint64{}
	for lane := range r.Topic.Lanes {
		out[lane] = seq
	}
	return out
}

// A document that was removed is not listed, where ClickHouse lacks the row of its removal.
func TestListRemoved(t *testing.T) {
	now := time.Now().UnixNano()
	for _, c := range []struct {
		name   string
		stored uint64 // up to which sequence of DOCS, as the list knows
		purge  bool   // the removal has left DOCS
	}{
		{"the row is lost", 2, false},
		{"the row is lost and the record has left", 2, true},
		{"the row came after ClickHouse was read, and the record left before DOCS was", 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			lives := &document.Record{ID: "abcd0002", Op: schemas.OpStored, Version: 1, Created: now, Changed: now, Body: []byte(`{"n":2}`)}
			first := &document.Record{ID: "abcd0001", Op: schemas.OpStored, Version: 1, Created: now, Changed: now, Body: []byte(`{"n":1}`)}
			removed := &document.Record{ID: first.ID, Op: schemas.OpRemoved, Version: 2, Created: now, Changed: now + 1}
			r.store(first, 1)
			r.put(first)
			r.put(removed)
			if c.purge {
				s, err := r.js.Stream(t.Context(), schemas.StreamDocs)
				if err == nil {
					err = s.Purge(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			r.put(lives)
			r.known[r.Topic.Name] = &known{began: time.Now(), upTo: r.lanes(c.stored)}
			docs, more, err := r.List(t.Context(), &r.Topic, Range{From: 0, To: 1 << 62}, 1)
			if err != nil || more || len(docs) != 1 || docs[0].ID != lives.ID {
				t.Errorf("%d documents, more: %v, %v", len(docs), more, err)
				for _, d := range docs {
					t.Logf("listed: %s, version %d", d.ID, d.Version)
				}
			}
		})
	}
}
