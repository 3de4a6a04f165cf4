package documents

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// A batch is written whole, with every kind of change, and each change makes one version.
func TestBatch(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	docs, err := c.Batch(ctx,
		Op{Kind: Create, ID: "a", Path: "p", Body: []byte(`{"n": 1}`)}, Op{Kind: Put, ID: "b", Body: []byte(`{}`)},
		Op{Kind: Create, Body: []byte(`{"own":1}`)}, Op{Kind: Create, Body: []byte(`{"own":2}`)})
	if err != nil || len(docs) != 4 || docs[0].Path != "p" || docs[2].ID == docs[3].ID {
		t.Fatalf("%+v, %v", docs, err)
	}
	docs, err = c.Batch(ctx, Op{ID: "a", If: IfVersion(1), Body: []byte(`{"n":2}`)}, Op{Kind: Put, ID: "b", Body: []byte(`{"n":3}`)}, Op{Kind: Remove, ID: docs[2].ID}, Op{Kind: Create, ID: "c", Body: []byte(`{}`)})
	if err != nil || docs[0].Version != 2 || docs[1].Version != 2 || docs[2].Version != 2 || docs[3].Version != 1 {
		t.Fatalf("%+v, %v", docs, err)
	}
	for id, body := range map[string]string{"a": `{"n":2}`, "b": `{"n":3}`, "c": `{}`} {
		if d, err := c.Load(ctx, id); err != nil || string(d.Body) != body {
			t.Errorf("%s: %+v, %v", id, d, err)
		}
	}
	if _, err := c.Load(ctx, docs[2].ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("the one that was removed: %v", err)
	}
	// As many as may be, and one document alone.
	ops := make([]Op, MaxBatch)
	for i := range ops {
		ops[i] = Op{Kind: Create, ID: fmt.Sprint("m", i), Body: []byte(`{}`)}
	}
	if docs, err = c.Batch(ctx, ops...); err != nil || len(docs) != MaxBatch {
		t.Fatalf("%d documents: %v", len(docs), err)
	}
	if docs, err = c.Batch(ctx, Op{ID: "m7", If: IfVersion(1), Body: []byte(`{"n":1}`)}); err != nil || docs[0].Version != 2 {
		t.Errorf("%+v, %v", docs, err)
	}
}

// A batch of which one change cannot be made writes nothing, and names every change for which
// it is refused.
func TestBatchRefused(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, func(topic *schemas.Topic) { topic.Documents.MaxDocuments = 5 })
	for _, id := range []string{"a", "b"} {
		if _, err := c.Create(ctx, Draft{ID: id, Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Batch(ctx, Op{Kind: Create, ID: "new", Body: []byte(`{}`)}, Op{ID: "a", If: IfVersion(4), Body: []byte(`{}`)}, Op{ID: "b", If: IfVersion(1), Body: []byte(`{}`)},
		Op{Kind: Create, ID: "none", Body: []byte(`{}`)}, Op{Kind: Remove, ID: "absent"})
	var refused *BatchError
	var version *VersionError
	if !errors.As(err, &refused) || !errors.Is(err, ErrVersion) || !errors.Is(err, ErrNotFound) || !errors.As(err, &version) || version.Have != 1 {
		t.Fatalf("%v", err)
	}
	if len(refused.Members) != 2 || refused.Members[0].Index != 1 || refused.Members[0].ID != "a" || refused.Members[1].Index != 4 || !strings.Contains(err.Error(), `change 2, of "a"`) {
		t.Errorf("%+v", refused)
	}
	for _, id := range []string{"new", "none"} {
		if _, err := c.Load(ctx, id); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if d, err := c.Load(ctx, "b"); err != nil || d.Version != 1 {
		t.Errorf("b was written: %+v, %v", d, err)
	}
	many, large := make([]Op, MaxBatch+1), make([]Op, MaxBatchBytes/schemas.MaxDocumentBytes+1)
	for i := range large {
		large[i] = Op{Kind: Create, ID: fmt.Sprint("l", i), Body: []byte(`{"a":"` + strings.Repeat("x", schemas.MaxDocumentBytes-8) + `"}`)}
	}
	for name, b := range map[string]struct {
		ops  []Op
		is   error
		says string
	}{
		"none":          {nil, schemas.ErrRequest, "1 to 500"},
		"too many":      {many, schemas.ErrRequest, "1 to 500"},
		"too large":     {large, schemas.ErrRequest, fmt.Sprint("the limit is ", MaxBatchBytes)},
		"twice":         {[]Op{{ID: "a", Body: []byte(`{}`)}, {ID: "b", Body: []byte(`{}`)}, {Kind: Remove, ID: "a"}}, schemas.ErrRequest, "changes 1 and 3"},
		"a body":        {[]Op{{ID: "a", Body: []byte(`{}`)}, {ID: "b", Body: []byte(`[]`)}}, document.ErrBody, `change 2 of the batch, of "b"`},
		"unlock alone":  {[]Op{{ID: "a", Body: []byte(`{}`), Unlock: true}}, schemas.ErrRequest, "token"},
		"above the max": {[]Op{{Kind: Create, Body: []byte(`{}`)}, {Kind: Create, Body: []byte(`{}`)}, {Kind: Create, Body: []byte(`{}`)}, {Kind: Create, Body: []byte(`{}`)}}, ErrFull, "allows 5"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.Batch(ctx, b.ops...); !errors.Is(err, b.is) || !strings.Contains(err.Error(), b.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// While eight callers move amounts between accounts by batches, each is moved whole or not
// at all: the sum stays, and every version was made by one batch that its caller was told of.
func TestBatchesAtOnce(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	const accounts, callers, each = 6, 8, 30
	var ops []Op
	for i := range accounts {
		ops = append(ops, Op{Kind: Create, ID: fmt.Sprint("a", i), Body: []byte(`{"n":1000}`)})
	}
	if _, err := c.Batch(ctx, ops...); err != nil {
		t.Fatal(err)
	}
	amount := func(d *Document) (n int) {
		var body struct{ N int }
		if err := json.Unmarshal(d.Body, &body); err != nil {
			t.Error(err)
		}
		return body.N
	}
	var wg sync.WaitGroup
	for w := range callers {
		wg.Go(func() {
			for i := range each {
				from, to := (w+i)%accounts, (w+2*i+1)%accounts
				if from == to {
					to = (to + 1) % accounts
				}
				for done := false; !done; {
					docs, err := c.LoadMany(ctx, []string{fmt.Sprint("a", from), fmt.Sprint("a", to)})
					if err != nil {
						t.Error(err)
						return
					}
					_, err = c.Batch(ctx,
						Op{ID: docs[0].ID, If: IfVersion(docs[0].Version), Body: fmt.Appendf(nil, `{"n":%d}`, amount(docs[0])-w-1)},
						Op{ID: docs[1].ID, If: IfVersion(docs[1].Version), Body: fmt.Appendf(nil, `{"n":%d}`, amount(docs[1])+w+1)})
					if done = err == nil; err != nil && !errors.Is(err, ErrVersion) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	sum, versions := 0, uint64(0)
	for i := range accounts {
		d, err := c.Load(ctx, fmt.Sprint("a", i))
		if err != nil {
			t.Fatal(err)
		}
		sum, versions = sum+amount(d), versions+d.Version-1
	}
	if sum != 1000*accounts || versions != 2*callers*each {
		t.Errorf("the sum is %d after %d changes, expected %d and %d", sum, versions, 1000*accounts, 2*callers*each)
	}
}

// A batch whose document got another record between its look and its write is evaluated again:
// the cleaner's refresh of the same version does not refuse it, another's version does.
func TestBatchValidatedAgain(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	if _, err := c.Create(ctx, Draft{ID: "a", Body: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	change := func(version uint64) {
		last, err := c.last(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		next := *last
		next.Version = version
		if _, err := c.w.Put(ctx, fronts.Record{Subject: last.Subject(), Header: next.Header(), Data: last.Body, Expect: last.Seq}); err != nil {
			t.Fatal(err)
		}
	}
	once := func(version uint64) {
		looked := false
		c.cfg.Now = func() time.Time { // asked after the look, before the write
			if !looked {
				looked = true
				change(version)
			}
			return time.Now()
		}
	}
	once(1)
	docs, err := c.Batch(ctx, Op{ID: "a", If: IfVersion(1), Body: []byte(`{"n":2}`)}, Op{Kind: Create, ID: "b", Body: []byte(`{}`)})
	if err != nil || docs[0].Version != 2 {
		t.Fatalf("%+v, %v", docs, err)
	}
	once(7)
	var version *VersionError
	if _, err := c.Batch(ctx, Op{ID: "a", If: IfVersion(2), Body: []byte(`{}`)}, Op{Kind: Remove, ID: "b"}); !errors.As(err, &version) || version.Have != 7 {
		t.Errorf("%v", err)
	}
	if _, err := c.Load(ctx, "b"); err != nil {
		t.Errorf("b was removed: %v", err)
	}
}
