package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
)

// What is promised of one document, of two in a batch, and of a list holds while every part is
// killed, three times each or ALMANAC_DOCUMENTS_KILLS: of eight creates of an id one wins, and
// of two updates or batches with one version; created stays and changed grows; a list has each
// document once, in pages of 500.
func TestDocumentPromisesUnderKills(t *testing.T) {
	t.Parallel()
	kills := sized("ALMANAC_DOCUMENTS_KILLS", 3)
	topic := docsTopic()
	topic.Documents.HotFor = time.Second
	e := start(t, topic)
	c := e.documents("customers")
	create(t, c, "l-", "listed", 1203)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	versions := make([]uint64, 3) // that were acknowledged
	works := []func(round int) uint64{
		func(round int) uint64 { return oneOfEightCreates(t, c, fmt.Sprintf("c-%d", round)) },
		func(round int) uint64 { return oneOfTwoUpdates(t, c, fmt.Sprintf("u-%d", round)) },
		func(int) uint64 { listedOnce(t, c, 1203); return 0 },
	}
	rounds := make([]int, len(works))
	e.underKills(seed, kills, func(killed <-chan struct{}) {
		parallel(t, len(works), func(w int) {
			for !t.Failed() {
				versions[w] += works[w](rounds[w])
				rounds[w]++
				select {
				case <-killed:
					return
				default:
				}
			}
		})
	})
	t.Logf("rounds %v", rounds)
	e.stored("customers", 1203+versions[0]+versions[1], 2*time.Minute)
	e.verified("customers")
}

// oneOfEightCreates creates an id eight times at once and updates the document three times.
func oneOfEightCreates(t *testing.T, c *documents.Collection, id string) (versions uint64) {
	errs, docs := make([]error, 8), make([]*documents.Document, 8)
	parallel(t, 8, func(i int) {
		docs[i], errs[i] = c.Create(t.Context(), documents.Draft{ID: id, Path: "p", Body: fmt.Appendf(nil, `{"i":%d}`, i)})
	})
	var won *documents.Document
	for i, err := range errs {
		switch {
		case err == nil && won != nil:
			t.Errorf("two creates of %s won", id)
		case err == nil:
			won = docs[i]
		case !errors.Is(err, documents.ErrExists):
			t.Errorf("%s: %v", id, err)
		}
	}
	if won == nil {
		t.Errorf("no create of %s won: %v", id, errs)
		return 0
	}
	for version, last := uint64(2), won.Changed; version <= 4; version++ {
		d, err := c.Update(t.Context(), id, documents.IfVersion(version-1), []byte(`{}`))
		if err != nil || !d.Created.Equal(won.Created) || !d.Changed.After(last) || d.Version != version {
			t.Errorf("%s: %+v, %v after %s", id, d, err, last)
			return version - 1
		}
		last = d.Changed
	}
	return 4
}

// oneOfTwoUpdates has two updates, and then two batches over two documents, with one version.
func oneOfTwoUpdates(t *testing.T, c *documents.Collection, id string) (versions uint64) {
	for _, name := range []string{id + "a", id + "b"} {
		if _, err := c.Create(t.Context(), documents.Draft{ID: name, Body: []byte(`{}`)}); err != nil {
			t.Error(err)
			return versions
		}
		versions++
	}
	race := func(write func(i int) error) {
		errs := make([]error, 2)
		parallel(t, 2, func(i int) { errs[i] = write(i) })
		if errs[0] != nil {
			errs[0], errs[1] = errs[1], errs[0]
		}
		var refused *documents.VersionError
		if errs[0] != nil || !errors.As(errs[1], &refused) || refused.Have != refused.Want+1 {
			t.Errorf("%s: %v", id, errs)
		}
	}
	race(func(i int) error {
		_, err := c.Update(t.Context(), id+"a", documents.IfVersion(1), fmt.Appendf(nil, `{"w":%d}`, i))
		return err
	})
	race(func(i int) error {
		body := fmt.Appendf(nil, `{"batch":%d}`, i)
		_, err := c.Batch(t.Context(), documents.Op{ID: id + "b", If: documents.IfVersion(1), Body: body}, documents.Op{ID: id + "a", If: documents.IfVersion(2), Body: body})
		return err
	})
	docs, err := again(c.LoadMany)(t.Context(), []string{id + "a", id + "b"})
	if err != nil || docs[0] == nil || docs[1] == nil || docs[0].Version != 3 || docs[1].Version != 2 || string(docs[0].Body) != string(docs[1].Body) {
		t.Errorf("%s: %+v, %v", id, docs, err)
	}
	return versions + 3
}

// listedOnce lists documents while others are created under other paths.
func listedOnce(t *testing.T, c *documents.Collection, n int) {
	docs, pages := list(t, c, documents.Selection{Path: "listed"})
	seen := map[string]bool{}
	for _, d := range docs {
		seen[d.ID] = true
	}
	if len(docs) != n || len(seen) != n || fmt.Sprint(pages) != "[500 500 203]" {
		t.Errorf("%d documents, %d of them different, in pages of %v", len(docs), len(seen), pages)
	}
}
