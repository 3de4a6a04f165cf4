package query

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/tables"
)

// Both ways to count values say the same of the same events, and each field's empty value is counted however rare it is.
func TestValuesAreCountedAlike(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	db, err := tables.Open(srv.HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	r := &Reader{db: db}
	exprs := []string{"['info', 'error', ''][number % 3 + 1]", "toString(number % 5000)", "if(number = 7, '', toString(number % 4))"}
	const most = 6000
	counted := func(statement string) map[cell]uint64 {
		t.Helper()
		cells := map[cell]uint64{}
		err := r.lines(t.Context(), &tables.Select{SQL: statement + " FORMAT JSONEachRow", Settings: facetSettings}, func(line []byte) error {
			var got struct {
				Bucket int64  `json:"_bucket"`
				Value  string `json:"_value"`
				N      uint64 `json:"_n"`
			}
			err := json.Unmarshal(line, &got)
			cells[cell{got.Bucket, got.Value}] += got.N
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return cells
	}
	const from = "numbers(20000) WHERE number < 19999"
	pairs, fields := counted(valueStatement(facetPairs(exprs), from, most)), counted(fieldStatements(exprs, from, most))
	if diff := cmp.Diff(pairs, fields, cmp.AllowUnexported(cell{})); diff != "" || len(pairs) != 3+5000+5+1 {
		t.Errorf("of %d (-pairs +fields): %s", len(pairs), diff)
	}
	few := counted(fieldStatements(exprs, from, 3))
	if len(few) != 3+3+3+1 || few[cell{2, ""}] != 1 || few[cell{3, ""}] != 19999 {
		t.Errorf("the most frequent are %v", few)
	}
	if f := facet("host", 1, few, 19999, 2); f.Other != 19999-8 || f.Empty != 0 || len(f.Values) != 2 {
		t.Errorf("of 5000 values 4 times each, and two shown: %+v", f)
	}
}
