package once

import (
	"encoding/json"
	"io"
	"slices"
	"testing"

	"github.com/almanac-events/almanac/embedded/embeddedtest"
	"github.com/almanac-events/almanac/tables"
)

// Rows are read as JSON's decoder reads them, with and without escapes.
func TestSplit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line string
		fast bool
	}{
		"numbers as texts":     {`["12", "-0.5", "nan"]`, true},
		"one":                  {`["a"]`, true},
		"empty ones":           {`["", "", ""]`, true},
		"one empty":            {`[""]`, true},
		"commas and brackets":  {`["a,b", "[]", ", ", "{}"]`, true},
		"other scripts":        {`["größe", "温度"]`, true},
		"quotes":               {`["[\"a\",\"b\"]","1"]`, false},
		"a backslash":          {`["a\\","b"]`, false},
		"a line's end in it":   {`["a\nb"]`, false},
		"an escaped character": {`["\u0001"]`, false},
		"no spaces between":    {`["a","b"]`, false},
		"none":                 {`[]`, false},
		"null":                 {`[null]`, false},
		"null in the middle":   {`["a",null,"b"]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got, want []string
			if err := json.Unmarshal([]byte(c.line), &want); err != nil {
				t.Fatal(err)
			}
			if fast := split([]byte(c.line+"\n"), &got); fast != c.fast {
				t.Fatalf("split is %t of %s", fast, c.line)
			} else if fast && !slices.Equal(got, want) {
				t.Errorf("%q, expected %q", got, want)
			}
		})
	}
}

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// Rows that ClickHouse writes are split, and not left to the decoder of JSON.
func TestSplitOfAnAnswer(t *testing.T) {
	t.Parallel()
	db, err := tables.Open(embeddedtest.Start(t, embeddedtest.WithoutNATS()).HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	body, err := db.Select(t.Context(), &tables.Select{SQL: "SELECT '', toString(1.5), 'a,b' FORMAT JSONCompactEachRow", Settings: readSettings})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	line, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	var row []string
	if !split(line, &row) || !slices.Equal(row, []string{"", "1.5", "a,b"}) {
		t.Errorf("%q is %q", line, row)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte(`["a", "b"]`))
	f.Add([]byte(`["a", ", ", "b"]`))
	f.Add([]byte(`[""", "]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var got, want []string
		if !split(line, &got) || json.Unmarshal(line, &want) != nil {
			return
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, expected %q", line, got, want)
		}
	})
}
