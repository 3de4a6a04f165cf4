package document

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// The lanes of generated ids are those that such ids have always had.
func TestSeedLanes(t *testing.T) {
	t.Parallel()
	generated := schemas.NewTopicOf(kinds.Document, "customers")
	generated.Documents.IDs = schemas.IDsGenerated
	for id, want := range map[string]int{"AAAA": 0, "APAA": 0, "AQAA": 1, "AgAA": 2, "AhAA": 2, "AwAA": 3, "FFAA": 0, "emma": 2} {
		if got := Lane(&generated, id); got != want {
			t.Errorf("%s is in lane %d of 4, expected %d", id, got, want)
		}
	}
	for _, n := range []int{3, 0, 512, -1, 12} {
		topic := schemas.NewTopicOf(kinds.Document, "customers")
		topic.Lanes = n
		if err := topic.Validate(); err == nil {
			t.Errorf("a topic with %d lanes was taken", n)
		}
	}
}

// Random ids of both kinds are spread evenly.
func TestLanesAreEven(t *testing.T) {
	t.Parallel()
	for _, ids := range []string{schemas.IDsGenerated, schemas.IDsAny} {
		topic := schemas.NewTopicOf(kinds.Document, "customers")
		topic.Lanes, topic.Documents.IDs, topic.Documents.IDLength = 16, ids, 8
		const n = 100_000
		var in [16]int
		for range n {
			in[Lane(&topic, NewID(topic.Documents))]++
		}
		for lane, got := range in {
			if share := float64(got) * 16 / n; share < 0.95 || share > 1.05 {
				t.Errorf("ids %s: lane %d has %.3f of its share", ids, lane, share)
			}
		}
	}
}

// A record is read back as it was written, and what is none is refused.
func TestRecords(t *testing.T) {
	t.Parallel()
	r := Record{Topic: "customers", Lane: "2", ID: "c-1", Path: "se/uppsala", Op: schemas.OpUpdated, Version: 3, Created: 5, Changed: 9, By: "ada", User: "u-1", Body: []byte(`{"a":1}`)}
	got, err := Parse(r.Subject(), 0, r.Header(), r.Body, len(r.Body))
	if err != nil || got.Path != r.Path || got.Version != 3 || got.Created != 5 || got.Changed != 9 || got.By != "ada" || got.User != "u-1" || got.Op != r.Op {
		t.Fatalf("%+v, %v", got, err)
	}
	for name, change := range map[string]func(nats.Header){
		"no op":           func(h nats.Header) { h.Del(schemas.HeaderOp) },
		"another op":      func(h nats.Header) { h.Set(schemas.HeaderOp, "moved") },
		"version 0":       func(h nats.Header) { h.Set(schemas.HeaderVersion, "0") },
		"no version":      func(h nats.Header) { h.Del(schemas.HeaderVersion) },
		"before creation": func(h nats.Header) { h.Set(schemas.HeaderChanged, "4") },
		"a removal":       func(h nats.Header) { h.Set(schemas.HeaderOp, schemas.OpRemoved) },
		"a bad path":      func(h nats.Header) { h.Set(schemas.HeaderPath, "a//b") },
		"a stub":          func(h nats.Header) { h.Set(schemas.HeaderStub, "2026-11.0000000000000007.1") },
		"a bad refresh":   func(h nats.Header) { h.Set(schemas.HeaderRefresh, "x") },
	} {
		t.Run(name, func(t *testing.T) {
			h := r.Header()
			change(h)
			if _, err := Parse(r.Subject(), 0, h, r.Body, len(r.Body)); !errors.Is(err, schemas.ErrRecord) {
				t.Errorf("%v", err)
			}
		})
	}
	for _, id := range []string{"a'b", "a\u00a0b", strings.Repeat("x", MaxIDBytes+1)} { // subjects may have them
		odd := r
		odd.ID = id
		if _, err := Parse(odd.Subject(), 0, odd.Header(), odd.Body, len(odd.Body)); !errors.Is(err, schemas.ErrRecord) {
			t.Errorf("the id %q: %v", id, err)
		}
	}
	if _, err := Parse(r.Subject(), 0, r.Header(), []byte("{"), 1); !errors.Is(err, schemas.ErrRecord) {
		t.Errorf("a body that is not JSON: %v", err)
	}
}

// Paths and ids are refused with the number and the limit.
func TestLimits(t *testing.T) {
	t.Parallel()
	for path, ok := range map[string]bool{
		"": true, "a": true, "se/uppsala": true, "a/b/c/d/e/f/g/h": true, "a/b/c/d/e/f/g/h/i": false, "/a": false, "a/": false, "a.b": false, "a/*": false,
		strings.Repeat("x", 64): true, strings.Repeat("x", 65): false,
	} {
		if err := CheckPath(path); (err == nil) != ok {
			t.Errorf("path %q: %v", path, err)
		}
	}
	generated := schemas.Documents{IDs: schemas.IDsGenerated, IDLength: 8}
	for id, ok := range map[string]bool{"abcd1234": true, "abcd123": false, "abcd12345": false, "abcd.234": false, "": false} {
		if err := CheckID(generated, id); (err == nil) != ok {
			t.Errorf("id %q: %v", id, err)
		}
	}
	for id, ok := range map[string]bool{"a": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, "a b": false, "a.b": false, "é": false} {
		if err := CheckID(schemas.Documents{IDs: schemas.IDsAny}, id); (err == nil) != ok {
			t.Errorf("id %q: %v", id, err)
		}
	}
}

// Ids and paths have 64 characters, and no other byte.
func TestPlain(t *testing.T) {
	t.Parallel()
	const all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	if !plain(all) || plain("") {
		t.Error("all characters together, or none of them")
	}
	for c := range 256 {
		if s := string([]byte{byte(c)}); plain("a"+s) != strings.Contains(all, s) {
			t.Errorf("byte %#x: %t", c, plain("a"+s))
		}
	}
}

// What is not built for documents is refused when it is declared.
func TestNotBuilt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*schemas.Topic){
		"pii":        func(topic *schemas.Topic) { topic.PII = []schemas.Private{{Field: schemas.ColUserID, Rule: "hash"}} },
		"other kind": func(topic *schemas.Topic) { topic.Kind = kinds.Log },
	} {
		t.Run(name, func(t *testing.T) {
			topic := schemas.NewTopicOf(kinds.Document, "customers")
			change(&topic)
			if err := topic.Validate(); err == nil || !strings.Contains(err.Error(), "document") {
				t.Errorf("%v", err)
			}
		})
	}
}
