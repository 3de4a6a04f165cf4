package tables

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ClickHouse/ch-go/compress"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/sql"
)

// ClickHouse reads the same events from frames as from those in LZ4, which another
// library wrote of the same block: of text, of noise, of both, in one block
// and in many.
func TestZstdIsRead(t *testing.T) {
	t.Parallel()
	db, _, topic := openWith(t, schemas.NewTopic("app", schemas.Field{Name: "n", Type: schemas.TypeInt64}, schemas.Field{Name: "ms", Type: schemas.TypeFloat64}, schemas.Field{Name: "path", Type: schemas.TypeLowCardinality}))
	rng := rand.New(rand.NewPCG(7, 1))
	words := strings.Fields("request served from cache after retry of upstream with status and token renewed for session")
	noise := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32()) & 0x7f
		}
		return string(b)
	}
	text := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(words[rng.IntN(len(words))] + " ")
		}
		return b.String()
	}
	type shape struct {
		rows    int
		message func() string
	}
	var frames [2][][]byte // by shard: ours, those of the other library
	for i, s := range []shape{
		{1, func() string { return "" }}, {1, func() string { return "hello" }}, {7, func() string { return text(60) }}, {2000, func() string { return text(100) }},
		{2000, func() string { return "constant" }}, {400, func() string { return text(rng.IntN(2000)) }}, {300, func() string { return noise(rng.IntN(1500)) }},
		{20, func() string { return strings.Repeat("r", rng.IntN(60_000)) }}, {500, func() string { return noise(rng.IntN(100)) + text(rng.IntN(400)) }},
	} {
		for k := range frames {
			rng = rand.New(rand.NewPCG(uint64(i), 2))
			b := frame.NewBuilder(&topic)
			ts := noon.UnixNano()
			for n := range s.rows {
				ts += rng.Int64N(30_000)
				e := schemas.Event{Level: words[rng.IntN(4)], Service: "api", UserID: words[rng.IntN(9)], Message: s.message(), Attrs: []schemas.Attr{
					schemas.Int64("n", int64(n)), schemas.Float64("ms", rng.Float64()), schemas.String("path", words[rng.IntN(6)]), schemas.Int64("code", rng.Int64N(9))}}
				b.Append(&e, ts, schemas.DerivedID(ts, uint64(i), uint64(n)))
			}
			_, payload := b.EncodeTo(nil)
			if k == 1 {
				payload = asLZ4(t, &topic, payload)
			}
			frames[k] = append(frames[k], payload)
		}
	}
	if err := db.Insert(t.Context(), &Insert{Topic: &topic, Schema: 1, Month: november, Shard: 5, Frames: framesAt(t, &topic, 1, frames[0]...)}); err != nil {
		t.Fatal(err)
	}
	// A body is compressed in one way, and the end of an insert's as our frames are.
	q := insertValues()
	q.Set("query", fmt.Sprintf("INSERT INTO %s (%s, month, shard, pos) SELECT *, %d, 6, 1 FROM input('%s') FORMAT Native", sql.QuotedTable(db.Database, "app"),
		strings.Join(topic.Columns(1), ", "), november, strings.ReplaceAll(topic.FrameStructure(1), "'", "\\'")))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, db.base+"/?"+q.Encode(), bytes.NewReader(slices.Concat(frames[1]...)))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := db.do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Close()
	var shards, kinds, rows uint64
	sum := "SELECT count(), uniqExact(hashes), max(held) FROM (SELECT shard, sum(cityHash64(ts, id, level, service, type, user_id, message, attributes, n, ms, path)) AS hashes, count() AS held FROM " + sql.QuotedTable(db.Database, "app") + " GROUP BY shard)"
	if err := db.Conn().QueryRow(t.Context(), sum).Scan(&shards, &kinds, &rows); err != nil || shards != 2 || kinds != 1 || rows != 5229 {
		t.Errorf("%d shards of %d rows hold %d kinds of events, %v", shards, rows, kinds, err)
	}
}

// asLZ4 returns a frame that another library compressed.
func asLZ4(t *testing.T, topic *schemas.Topic, payload []byte) []byte {
	t.Helper()
	var r frame.Reader
	w := compress.NewWriter(compress.LevelZero, compress.LZ4)
	if err := r.Open(payload, topic, topic.Version); err != nil {
		t.Fatal(err)
	}
	if err := w.Compress(r.Raw()); err != nil {
		t.Fatal(err)
	}
	return w.Data
}
