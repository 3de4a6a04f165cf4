package backup

import (
	"errors"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// What a target may have where a restore begins, or goes on: what a killed one left, and nothing of anyone else.
func TestAdmits(t *testing.T) {
	t.Parallel()
	const name, other = "a.backup", "b.backup"
	rows := []tables.Held{{Name: "app"}}
	for why, c := range map[string]struct {
		target
		whole bool
		says  string // empty: admitted
	}{
		"empty servers":                           {},
		"killed before ClickHouse was marked":     {target: target{begun: true, of: name}},
		"killed among the tables":                 {target: target{begun: true, of: name, marked: true, markedOf: name, tables: rows}},
		"killed among the streams":                {target: target{begun: true, of: name, marked: true, markedOf: name, tables: rows, streams: []string{schemas.CopiesStream, schemas.StreamDocs}}},
		"killed once the registry was there":      {target: target{begun: true, bucket: true, of: name, marked: true, markedOf: name, tables: rows, streams: []string{schemas.KVStream}}, whole: true},
		"killed once ClickHouse was unmarked":     {target: target{begun: true, bucket: true, of: name, tables: rows, streams: []string{schemas.KVStream}}, whole: true},
		"what JetStream kept was removed":         {target: target{marked: true, markedOf: name, tables: rows}},
		"what ClickHouse kept was removed":        {target: target{begun: true, of: name, streams: []string{schemas.StreamEvents}}},
		"a restored Almanac":                      {target: target{tables: rows, streams: []string{schemas.StreamEvents, schemas.KVStream}}, says: "the stream EVENTS"},
		"streams of others":                       {target: target{streams: []string{schemas.StreamDocs}}, says: "the stream DOCS"},
		"tables of others":                        {target: target{tables: rows}, says: "the table app"},
		"streams of others beside what is ours":   {target: target{marked: true, markedOf: name, tables: rows, streams: []string{schemas.StreamEvents}}, says: "the stream EVENTS"},
		"tables of others beside what is ours":    {target: target{begun: true, of: name, tables: rows}, says: "the table app"},
		"a registry of others beside the mark":    {target: target{begun: true, of: name, streams: []string{schemas.KVStream}}, says: "the stream " + schemas.KVStream},
		"another backup half restored in NATS":    {target: target{begun: true, of: other}, says: other},
		"another backup whole in NATS":            {target: target{begun: true, bucket: true, of: other}, says: other},
		"another backup half restored in the two": {target: target{begun: true, of: name, marked: true, markedOf: other, tables: rows}, says: other},
		"a mark that names none":                  {target: target{marked: true, tables: rows}, says: "a restore of "},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			whole, err := c.admits(name)
			if c.says == "" {
				if err != nil || whole != c.whole {
					t.Errorf("whole %t, %v", whole, err)
				}
				return
			}
			if whole || !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("whole %t, %v; want %q", whole, err, c.says)
			}
		})
	}
}
