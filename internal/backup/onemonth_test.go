package backup

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// One month alone is refused of kinds whose events belong together beyond a month, and where there are no events of it.
func TestOneMonthAlone(t *testing.T) {
	t.Parallel()
	s := opened(t, Directory(t.TempDir()))
	month, other := schemas.Month(202611), schemas.Month(202612)
	m := example()
	var all []message
	for _, kind := range kinds.All() {
		text, err := json.Marshal(schemas.Topic{Name: string(kind), Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, message{subject: schemas.KVSubject(schemas.TopicKey(string(kind))), data: text},
			message{subject: schemas.KVSubject(schemas.HeadKey(string(kind), month)), data: []byte("{}")},
			message{subject: schemas.KVSubject(schemas.ShardKey(string(kind), other, 7)), data: []byte("{}")})
	}
	for i := range m.Streams {
		if m.Streams[i].Name != schemas.KVStream {
			continue
		}
		c := chunker{keep: func(chunk []byte, last uint64) error {
			o, err := s.Put(t.Context(), chunk)
			m.Streams[i].Chunks = append(m.Streams[i].Chunks, Chunk{last, o})
			return err
		}}
		for n := range all {
			all[n].seq = uint64(n + 1)
			if err := c.add(&all[n]); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.end(); err != nil {
			t.Fatal(err)
		}
	}
	for kind, want := range map[schemas.Kind]string{
		schemas.KindLog: "", schemas.KindMetric: "", schemas.KindAudit: "", schemas.KindMeter: "kind meter", schemas.KindDocument: "kind document", schemas.KindTimer: "kind timer",
	} {
		err := Only{string(kind)}.CheckMonth(t.Context(), s, m, month)
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrNoMonth) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if err := (Only)(nil).CheckMonth(t.Context(), s, m, month); !errors.Is(err, ErrNoMonth) {
		t.Errorf("all of them: %v", err)
	}
	if err := (Only{"log", "audit"}).CheckMonth(t.Context(), s, m, month); err != nil {
		t.Errorf("two of them: %v", err)
	}
	if err := (Only{"log"}).CheckMonth(t.Context(), s, m, other); !errors.Is(err, ErrNoMonth) || !strings.Contains(err.Error(), "the backup has 2026-11") {
		t.Errorf("another month: %v", err)
	}
}
