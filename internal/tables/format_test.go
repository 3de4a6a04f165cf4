package tables

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// engines keeps an engine in memory, as the registry does.
type engines struct{ id string }

func (e *engines) Engine(context.Context) (string, uint64, error) { return e.id, 0, nil }

func (e *engines) SetEngine(_ context.Context, id string, _ uint64) error {
	e.id = id
	return nil
}

// A ClickHouse with the tables of another format is established by no part, whether that is older or newer, and also where the registry
// was lost; one without a number, named by hand, is of this one.
func TestFormatOfTheEngine(t *testing.T) {
	t.Parallel()
	db, srv := open(t)
	kept := &engines{}
	db.MeantFor(kept)
	if err := db.Establish(t.Context()); err != nil {
		t.Fatal(err)
	}
	look, err := db.Look(t.Context())
	if err != nil || len(look.Formats) != 1 || look.Formats[0] != strconv.Itoa(schemas.Format) {
		t.Fatalf("named with %+v: %v", look, err)
	}
	database := sql.QuoteName(schemas.EngineDatabase(db.Database, kept.id))
	again := func(comment, id string) error {
		t.Helper()
		if _, err := srv.SQL().ExecContext(t.Context(), "ALTER DATABASE "+database+" MODIFY COMMENT '"+comment+"'"); err != nil {
			t.Fatal(err)
		}
		db.pin = pin{engines: &engines{id}, doubts: make(chan struct{}, 1)} // of a part that starts
		return db.Establish(t.Context())
	}
	for _, number := range []string{strconv.Itoa(schemas.Format - 1), strconv.Itoa(schemas.Format + 1), "", "x"} {
		comment := strings.Replace(schemas.EngineComment(), "format "+strconv.Itoa(schemas.Format), "format "+number, 1)
		for _, id := range []string{kept.id, ""} {
			if err := again(comment, id); !errors.Is(err, schemas.ErrFormat) || !strings.Contains(err.Error(), strconv.Quote(number)) || !strings.Contains(err.Error(), "reads format "+strconv.Itoa(schemas.Format)) {
				t.Errorf("format %q, the registry has %q: %v", number, id, err)
			}
			if db.Established() {
				t.Errorf("format %q: established", number)
			}
			if _, err := db.Adopt(t.Context()); !errors.Is(err, schemas.ErrFormat) {
				t.Errorf("format %q: adopted: %v", number, err)
			}
		}
	}
	for _, comment := range []string{schemas.EngineComment(), "mine"} {
		if err := again(comment, kept.id); err != nil {
			t.Errorf("%q: %v", comment, err)
		}
	}
}
