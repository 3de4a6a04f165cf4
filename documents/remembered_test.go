package documents

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// TestUpdateWithoutALook: a write expects what its collection wrote or loaded last. What another collection wrote
// meanwhile is found all the same, and decides.
func TestUpdateWithoutALook(t *testing.T) {
	t.Parallel()
	a, ctx := open(t, nil)
	b, err := Open(ctx, a.reg.JetStream().Conn(), "customers", Config{By: "b"})
	if err != nil {
		t.Fatal(err)
	}
	const id = "abcd0001"
	known := func(c *Collection) bool {
		c.seen.mu.Lock()
		c.seen.lookFor = 0
		c.seen.mu.Unlock()
		_, known := c.seen.get(c.session(), []Op{{ID: id}}, time.Now())
		return known
	}
	body := func(n int) []byte { return fmt.Appendf(nil, `{"n":%d}`, n) }
	if _, err := a.Create(ctx, Draft{ID: id, Path: "p", Body: body(1)}); err != nil || !known(a) || known(b) {
		t.Fatalf("created: %v; known to its own collection: %t, to another: %t", err, known(a), known(b))
	}
	if d, err := a.Update(ctx, id, IfVersion(1), body(2)); err != nil || d.Version != 2 || d.Path != "p" {
		t.Fatalf("updated as it is known: %+v, %v", d, err)
	}
	if d, err := b.Load(ctx, id); err != nil || d.Version != 2 || !known(b) {
		t.Fatalf("loaded: %+v, %v; known: %t", d, err, known(b))
	}
	if d, err := b.Update(ctx, id, IfVersion(2), body(3)); err != nil || d.Version != 3 || !d.Created.Before(d.Changed) {
		t.Fatalf("updated as it was loaded: %+v, %v", d, err)
	}

	// What a remembers is not the newest from here on, and each of its writes goes by it at first.
	goes := func(when string) {
		t.Helper()
		if !known(a) {
			t.Fatalf("%s: nothing is remembered", when)
		}
	}
	var refused *VersionError
	goes("version 3")
	if _, err := a.Update(ctx, id, IfVersion(2), body(4)); !errors.As(err, &refused) || refused.Have != 3 {
		t.Errorf("an update of a version that another replaced: %v; want that version 3 is there", err)
	}
	if d, err := b.Update(ctx, id, Always, body(4)); err != nil || d.Version != 4 {
		t.Fatal(d, err)
	}
	goes("version 4")
	if _, err := a.Update(ctx, id, IfVersion(2), body(5)); !errors.As(err, &refused) || refused.Have != 4 {
		t.Errorf("an update of a version that is long gone: %v; want that version 4 is there", err)
	}
	if d, err := b.Update(ctx, id, Always, body(5)); err != nil || d.Version != 5 {
		t.Fatal(d, err)
	}
	goes("version 5")
	if d, err := a.Update(ctx, id, Always, body(6)); err != nil || d.Version != 6 || d.By != "test" || a.seen.lookFor != looksAfterRefusal {
		t.Errorf("an update without a version, of what another replaced: %+v, %v; %d writes look", d, err, a.seen.lookFor)
	}
	reads, err := a.reg.JetStream().Conn().SubscribeSync("$JS.API.DIRECT.GET." + schemas.StreamDocs)
	if err != nil {
		t.Fatal(err)
	}
	goes("its own")
	if d, err := a.Update(ctx, id, IfVersion(6), body(7)); err != nil || d.Version != 7 {
		t.Fatal(d, err)
	}
	if n, _, err := reads.Pending(); err != nil || n > 0 {
		t.Errorf("an update of what the collection wrote itself read %d times (%v)", n, err)
	}
	if _, err := a.Load(ctx, id); err != nil {
		t.Fatal(err)
	}
	if _, err := reads.NextMsgWithContext(ctx); err != nil {
		t.Errorf("a load did not read by a direct get: %v", err)
	}
	if err := b.Remove(ctx, id, Always); err != nil {
		t.Fatal(err)
	}
	goes("what is removed")
	if _, err := a.Update(ctx, id, IfVersion(7), body(8)); !errors.Is(err, ErrNotFound) {
		t.Errorf("an update of what another removed: %v", err)
	}
	if d, err := b.Put(ctx, Draft{ID: id, Path: "q", Body: body(9)}); err != nil || d.Version != 9 || !d.Made {
		t.Errorf("put where it was removed: %+v, %v", d, err)
	}
	goes("the path")
	if _, err := a.Put(ctx, Draft{ID: id, Path: "p", Body: body(10)}); !errors.Is(err, ErrPath) {
		t.Errorf("put under the path that it had before another created it again: %v", err)
	}
	if d, err := a.Load(ctx, id); err != nil || d.Version != 9 || d.Path != "q" || string(d.Body) != string(body(9)) {
		t.Errorf("in the end: %+v, %v", d, err)
	}
}

// TestRemembered is what a collection goes by without a look.
func TestRemembered(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	record := func(id string, seq uint64) *document.Record {
		return &document.Record{ID: id, Seq: seq, Version: seq, Created: 1, Changed: 2, Op: schemas.OpUpdated, Path: "p", User: "u", Body: []byte("{}")}
	}
	for name, c := range map[string]struct {
		do   func(m *remembered)
		ops  []Op
		at   time.Duration
		want uint64 // the sequence of the first change's document; 0: a look is needed
	}{
		"what was put":              {func(m *remembered) { m.put(1, record("a", 5), now) }, []Op{{ID: "a"}}, 0, 5},
		"what was not put":          {func(m *remembered) { m.put(1, record("a", 5), now) }, []Op{{ID: "b"}}, 0, 0},
		"one of two":                {func(m *remembered) { m.put(1, record("a", 5), now) }, []Op{{ID: "a"}, {ID: "b"}}, 0, 0},
		"one of two, and a create":  {func(m *remembered) { m.put(1, record("a", 5), now) }, []Op{{ID: "a"}, {ID: "b", Kind: Create}}, 0, 5},
		"the newer of two":          {func(m *remembered) { m.put(1, record("a", 7), now); m.put(1, record("a", 5), now) }, []Op{{ID: "a"}}, 0, 7},
		"a message that is not one": {func(m *remembered) { r := record("a", 5); r.Last = 9; m.put(1, r, now) }, []Op{{ID: "a"}}, 0, 9},
		"long ago":                  {func(m *remembered) { m.put(1, record("a", 5), now) }, []Op{{ID: "a"}}, rememberedFor + 1, 0},
		"loaded again":              {func(m *remembered) { m.put(1, record("a", 5), now); m.put(1, record("a", 5), now.Add(rememberedFor)) }, []Op{{ID: "a"}}, rememberedFor + 1, 5},
		"over another connection":   {func(m *remembered) { m.put(0, record("a", 5), now) }, []Op{{ID: "a"}}, 0, 0},
		"refused": {func(m *remembered) {
			m.put(1, record("a", 5), now)
			m.refused([]Op{{ID: "a"}}, []*document.Record{nil}, true)
		}, []Op{{ID: "a"}}, 0, 0},
		"refused by an older one": {func(m *remembered) {
			m.put(1, record("a", 7), now)
			m.refused([]Op{{ID: "a"}}, []*document.Record{record("a", 5)}, false)
		}, []Op{{ID: "a"}}, 0, 7},
		"of two generations ago": {func(m *remembered) {
			m.put(1, record("a", 5), now)
			for n := range 3 {
				m.put(1, record("b", 9), now.Add(time.Duration(n)*(rememberedFor+1)))
			}
		}, []Op{{ID: "a"}}, 0, 0},
		"another that was refused": {func(m *remembered) {
			m.put(1, record("a", 5), now)
			m.refused([]Op{{ID: "b"}}, []*document.Record{nil}, false)
		}, []Op{{ID: "a"}}, 0, 0},
		"a create that was refused": {func(m *remembered) {
			m.put(1, record("a", 5), now)
			m.refused([]Op{{ID: "b"}}, []*document.Record{nil}, true)
		}, []Op{{ID: "a"}}, 0, 5},
		"many after a refusal": {func(m *remembered) {
			m.put(1, record("a", 5), now)
			m.refused([]Op{{ID: "b"}}, []*document.Record{nil}, false)
			for range looksAfterRefusal {
				m.get(1, []Op{{ID: "a"}}, now)
			}
		}, []Op{{ID: "a"}}, 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &remembered{}
			c.do(m)
			last, known := m.get(1, c.ops, now.Add(c.at))
			if known != (c.want > 0) || known && (last[0].Expect() != c.want || last[0].Path != "p" || last[0].User != "u" || last[0].Removed() || last[0].Body != nil) {
				t.Errorf("%+v, %t; want sequence %d", last, known, c.want)
			}
		})
	}
}

// TestRememberedIsBounded: what is used last is kept, within the bound.
func TestRememberedIsBounded(t *testing.T) {
	t.Parallel()
	m, now := &remembered{}, time.Unix(1e9, 0)
	long := strings.Repeat("x", 1000)
	kept := []Op{{ID: "kept"}}
	m.put(1, &document.Record{ID: "kept", Seq: 1}, now)
	for n := range 3 * rememberedBytes / len(long) {
		m.put(1, &document.Record{ID: fmt.Sprint(n), Path: fmt.Sprint(n, long), Seq: uint64(n) + 2}, now)
		if _, known := m.get(1, kept, now); !known {
			t.Fatalf("forgot what is used all the time, at %d", n)
		}
		sum := int64(0)
		for _, generation := range []map[string]version{m.newer, m.older} {
			for id, v := range generation {
				sum += bytesOf(id, &v)
			}
			if n%1000 != 0 {
				break
			}
		}
		if sum > rememberedBytes {
			t.Fatalf("%d bytes at %d, the bound is %d", sum, n, rememberedBytes)
		}
	}
	if _, known := m.get(1, []Op{{ID: "0"}}, now); known {
		t.Error("it remembers all")
	}
}
