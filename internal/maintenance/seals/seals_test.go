package seals

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

var noon = time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)

// chained makes a chain of seals, each of the shard and reason that is named.
func chained(of ...schemas.Seal) []schemas.Seal {
	hash := schemas.SealGenesis
	for i := range of {
		s := &of[i]
		s.Topic, s.Shard.Topic, s.Shard.Month, s.Number, s.Prev, s.At = "trail", "trail", schemas.MonthOf(noon.UnixNano()), uint64(i+1), hash, noon
		s.Hash = s.Sum()
		hash = s.Hash
	}
	return of
}

func three() []schemas.Seal {
	return chained(schemas.Seal{Shard: schemas.PublicShard{ID: 1}, Rows: 10, Why: schemas.SealClosed}, schemas.Seal{Shard: schemas.PublicShard{ID: 2}, Rows: 20, Why: schemas.SealClosed},
		schemas.Seal{Shard: schemas.PublicShard{ID: 1}, Rows: 7, Why: schemas.SealErased, Replaces: 1, Erased: 3, Erasures: []string{"e-1"}})
}

// unsealed3 is three, of which the shard of the last was changed before its erasure.
func unsealed3() []schemas.Seal {
	all := three()
	all[2].Unsealed = "d"
	return chained(all...)
}

func TestDue(t *testing.T) {
	topic := schemas.NewTopicOf(kinds.Audit, "trail")
	entry := func(status registry.Status) *registry.Shard {
		return &registry.Shard{Topic: "trail", Month: schemas.MonthOf(noon.UnixNano()), ID: 1, Rows: 10, Status: status}
	}
	cleared := entry(registry.Closed)
	cleared.Anonymised, cleared.AnonymisedAt = []string{"message"}, noon
	gone := &ledger.ErasureRecord{Gone: []ledger.Cut{{Pos: 1, Rows: 2}, {Pos: 4, Rows: 1}}, Receipts: map[string]ledger.Receipt{"e-1": {Rows: 3, Seal: 4, Unsealed: "d"}, "e-0": {Seal: 3, Unsealed: "older"}}}
	forgotten := &ledger.ErasureRecord{Gone: gone.Gone, Forgotten: &ledger.Receipt{Rows: 3, Seal: 4, Unsealed: "d"}}
	sealed := map[schemas.ShardRef]schemas.Seal{entry("").Ref(): {Number: 4, Why: schemas.SealClosed}}
	erased := map[schemas.ShardRef]schemas.Seal{entry("").Ref(): {Number: 5, Why: schemas.SealErased, Erased: 3}}
	for name, c := range map[string]struct {
		entry   *registry.Shard
		record  *ledger.ErasureRecord
		current map[schemas.ShardRef]schemas.Seal
		why     string // empty: none is due
	}{
		"active":                         {entry(registry.Active), &ledger.ErasureRecord{}, nil, ""},
		"sealed by the router":           {entry(registry.Sealed), &ledger.ErasureRecord{}, nil, ""},
		"closed":                         {entry(registry.Closed), &ledger.ErasureRecord{}, nil, schemas.SealClosed},
		"closed and sealed":              {entry(registry.Closed), &ledger.ErasureRecord{}, sealed, ""},
		"erased since":                   {entry(registry.Closed), gone, sealed, schemas.SealErased},
		"erased, and that was forgotten": {entry(registry.Closed), forgotten, sealed, schemas.SealErased},
		"erased and sealed":              {entry(registry.Closed), gone, erased, ""},
		"an erasure is pending":          {entry(registry.Closed), &ledger.ErasureRecord{Pending: &ledger.Pending{}}, sealed, ""},
		"fields are being cleared":       {entry(registry.Closed), &ledger.ErasureRecord{ClearingAt: noon}, sealed, ""},
		"who cleared them died":          {entry(registry.Closed), &ledger.ErasureRecord{ClearingAt: noon.AddDate(0, 0, -1)}, nil, schemas.SealClosed},
		"and they are cleared again":     {entry(registry.Closed), &ledger.ErasureRecord{ClearingAt: noon.AddDate(0, 0, -1)}, nil, ""},
		"fields were cleared":            {cleared, &ledger.ErasureRecord{}, sealed, schemas.SealAnonymised},
		"being dropped":                  {entry(registry.Dropping), &ledger.ErasureRecord{}, sealed, ""},
		"dropped":                        {entry(registry.Dropped), &ledger.ErasureRecord{}, sealed, schemas.SealDropped},
		"dropped and never sealed":       {entry(registry.Dropped), &ledger.ErasureRecord{}, nil, ""},
		"dropped, and that was sealed ":  {entry(registry.Dropped), &ledger.ErasureRecord{}, map[schemas.ShardRef]schemas.Seal{entry("").Ref(): {Why: schemas.SealDropped}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			topic := topic
			if name == "and they are cleared again" {
				topic.Anonymise = schemas.Anonymise{AfterDays: 1, Fields: []string{"message"}}
			}
			next, needed := due(&topic, c.entry, c.record, c.current, noon)
			if needed != (c.why != "") || needed && next.Why != c.why {
				t.Errorf("%v %+v, want %q", needed, next, c.why)
			}
			if old := c.current[c.entry.Ref()]; needed && next.Replaces != old.Number {
				t.Errorf("it replaces %d, want %d", next.Replaces, old.Number)
			}
			if changed := c.why == schemas.SealErased; next.Unsealed != "" != changed {
				t.Errorf("unsealed %q", next.Unsealed)
			}
			if c.record == gone && c.why != "" && (next.Erased != 3 || !slices.Equal(next.Erasures, []string{"e-1"})) {
				t.Errorf("%+v", next)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	forged := func(change func([]schemas.Seal)) []schemas.Seal {
		all := three()
		change(all)
		return all
	}
	for name, c := range map[string]struct {
		kept, own []schemas.Seal
		problem   string // empty: none
		todo      []uint64
		replaced  int
	}{
		"the same":                       {three(), three(), "", []uint64{2, 3}, 0},
		"kept before an erasure":         {three()[:2], three(), "", []uint64{2, 3}, 1},
		"only the newest was kept":       {three()[2:], three(), "", []uint64{3}, 0},
		"a shard that closed later":      {three()[:1], three(), "", []uint64{3}, 1},
		"the registry lost its seals":    {three()[:1], nil, "does not have seal number 1", []uint64{1}, 0},
		"the registry lost its last":     {three(), three()[:2], "does not have seal number 3", []uint64{2, 3}, 0},
		"a kept seal was changed":        {forged(func(s []schemas.Seal) { s[1].Rows++ }), three(), "the file: bad seal: number 2 of topic trail was changed", []uint64{2, 3}, 0},
		"a seal of the registry changed": {three(), forged(func(s []schemas.Seal) { s[0].Rows++ }), "the registry: bad seal: number 1", []uint64{2, 3}, 0},
		"made again with another digest": {three(), forged(func(s []schemas.Seal) { s[0].Digest = "x"; chained(s...) }), "another seal number 1", []uint64{2, 3}, 0},
		"changed before an erasure":      {three()[:2], unsealed3(), "its rows were changed between seal number 1 and the erasures [e-1]", []uint64{2, 3}, 1},
		"one is missing in the file":     {append(three()[:1:1], three()[2]), three(), "stands where number 2 must", []uint64{3}, 0},
		"one is missing in the registry": {three(), append(three()[:1:1], three()[2]), "the registry: bad seal: number 3", []uint64{2, 3}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rep, todo := compare("trail", c.kept, c.own)
			var numbers []uint64
			for _, s := range todo {
				numbers = append(numbers, s.Number)
			}
			if !slices.Equal(numbers, c.todo) || len(rep.Replaced) != c.replaced {
				t.Errorf("to compare %v, replaced %q", numbers, rep.Replaced)
			}
			if text := strings.Join(rep.Problems, "\n"); c.problem == "" != (text == "") || !strings.Contains(text, c.problem) {
				t.Errorf("problems %q, want %q", text, c.problem)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		n    int
		err  error
	}{
		"nothing":       {"", 0, nil},
		"two":           {`{"topic":"a","number":1,"shard":"a-registry:2026-02:shard:00000000000000ff","at":"2026-02-01T00:00:00Z"}` + "\n" + `{"topic":"b","shard":"b-registry:2026-02:shard:00000000000000ff"}`, 2, nil},
		"another file":  {`{"events":[]}`, 0, schemas.ErrSeal},
		"not JSON":      {"hash", 0, schemas.ErrSeal},
		"cut in middle": {`{"topic":"a"`, 0, schemas.ErrSeal},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(strings.NewReader(c.text))
			if len(got) != c.n || !errors.Is(err, c.err) {
				t.Errorf("%d seals, %v", len(got), err)
			}
		})
	}
}
