package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
)

// An erasure takes the row that ended an earlier life of an id: neither that life nor a document that was removed is
// listed again, bodies stay with their documents, and nothing of what DOCS held is left on its disk.
func TestErasedLives(t *testing.T) {
	t.Parallel()
	topic := docsTopic()
	topic.Documents.UserField = "owner.id"
	d := startOnDisk(t, topic)
	d.router()
	d.sink()
	c := d.documents("customers")
	put := func(id, body string) {
		t.Helper()
		if _, err := c.Create(t.Context(), documents.Draft{ID: id, Path: "p", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	rows := 0
	for _, id := range []string{"again", "over"} { // of another, taken over, removed
		put(id, `{"owner":{"id":"bee"},"n":1}`)
		if _, err := c.Update(t.Context(), id, documents.Always, []byte(`{"owner":{"id":77},"n":2,"secret":"LEAKMARK"}`)); err != nil {
			t.Fatal(err)
		}
		if err := c.Remove(t.Context(), id, documents.Always); err != nil {
			t.Fatal(err)
		}
		rows += 3
	}
	put("again", `{"owner":{"id":"cee"},"n":3}`)
	put("over", `{"owner":{"id":77},"n":4,"secret":"LEAKMARK"}`) // all of its second life is meant
	put("mine", `{"owner":{"id":77},"secret":"LEAKMARK"}`)
	d.stored("customers", uint64(rows+3), time.Minute)

	x := d.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: "customers", Users: []string{"77"}})
	if err != nil {
		t.Fatal(err)
	}
	if job, err = x.Run(t.Context(), "customers", job.ID); err != nil || job.State != ledger.Erased || job.Rows != 6 {
		t.Fatalf("%+v, %v", job, err)
	}
	docs, _ := list(t, c, documents.Selection{Path: "p"})
	if len(docs) != 1 || docs[0].ID != "again" || string(docs[0].Body) != `{"owner":{"id":"cee"},"n":3}` {
		for _, doc := range docs {
			t.Errorf("listed: %s version %d %s", doc.ID, doc.Version, doc.Body)
		}
	}
	if n := d.count("SELECT count() FROM `%s`.customers_latest WHERE doc_id = 'again' AND body LIKE '%%cee%%'", d.srv.Database); n != 1 {
		t.Errorf("the view has %d rows of the document that is there", n)
	}
	eventually(t, time.Minute, func() error { // a removal of what lost its end is on its way
		if n := d.count("SELECT count() FROM `%s`.customers_latest", d.srv.Database); n != 1 {
			return fmt.Errorf("the view has %d documents, expected the one that is there", n)
		}
		return nil
	})
	err = filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the server goes on
		}
		if err != nil || e.IsDir() || filepath.Base(filepath.Dir(filepath.Dir(path))) != "DOCS" {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if bytes.Contains(b, []byte("LEAKMARK")) {
			at := bytes.Index(b, []byte("LEAKMARK"))
			t.Errorf("%s still has %d times what was erased: %q", path, bytes.Count(b, []byte("LEAKMARK")), b[max(0, at-700):at])
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
